package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/site/policy"
)

// Scripts, styles and programs have the hashes of their contents in their names and
// lie in a folder of their own: under such a name there is never another content.
// So browsers and hosts may keep them for ever, and a page that runs gets the files
// of its own version or none. What people or browsers ask for by name keeps it: the
// page, the service worker and its list, the icon, and the demos.

// asked are scripts that browsers ask for by their names.
var asked = []string{"sw.js", "precache.js"}

func hashable(name string) bool {
	switch path.Ext(name) {
	case ".js", ".css", ".wasm", ".names":
		return !slices.Contains(asked, name)
	}
	return false
}

// hash gives a file its name in the output folder: assets/app.0123456789abcdef.wasm.
func (b *build) hash(name string, content []byte) string {
	sum := sha256.Sum256(content)
	ending := path.Ext(name)
	hashed := policy.Hashed + strings.TrimSuffix(name, ending) + "." + hex.EncodeToString(sum[:8]) + ending
	if b.hashed == nil {
		b.hashed = map[string]string{}
	}
	b.hashed[name] = hashed
	return hashed
}

// address is where the page finds a file.
func (b *build) address(name string) (string, error) {
	if !hashable(name) {
		return name, nil
	}
	hashed, made := b.hashed[name]
	if !made {
		return "", fmt.Errorf("the page asks for %s, which was not made", name)
	}
	return hashed, nil
}

// worker is where the page finds the script of its workers, with the addresses of
// what that loads, which are relative to it: it runs a program, and starts others
// of its kind for the unpacker, if it does not run that itself.
func (b *build) worker(program string) (string, error) {
	script, err := b.address("worker.js")
	if err != nil {
		return "", err
	}
	settings := url.Values{}
	for setting, name := range map[string]string{"exec": "wasm_exec.js", "wasm": program} {
		file, err := b.address(name)
		if err != nil {
			return "", err
		}
		settings.Set(setting, path.Base(file))
	}
	if program != unpacker {
		script, err := b.worker(unpacker)
		if err != nil {
			return "", err
		}
		settings.Set("unpack", path.Base(script))
	}
	return script + "?" + settings.Encode(), nil
}
