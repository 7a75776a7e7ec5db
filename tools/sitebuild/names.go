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

// Scripts, styles and programs have the hashes of their contents in their names and a folder of their own.
// So browsers and hosts may keep them for ever, and a running page gets the files of its own version or
// none. Files that people or browsers request by name keep it: the page, the service worker and its list,
// the icon, and the demos.

// asked are scripts that browsers request by their names.
var asked = []string{"sw.js", "precache.js"}

func hashable(name string) bool {
	switch path.Ext(name) {
	case ".js", ".css", ".wasm", ".names":
		return !slices.Contains(asked, name)
	}
	return false
}

// hash returns a file's name in the output folder: assets/app.0123456789abcdef.wasm.
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

// address returns the address of a file for the page.
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

// worker returns the address of the script of workers that run a program, with the relative addresses of
// the files that it loads, and of its own variant that runs the unpacker.
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

// writeHeaders writes the _headers file for static hosts. If several rules set one header, some hosts send
// all values, so the rule for all files does not limit caching.
func (b *build) writeHeaders() error {
	var text strings.Builder
	rule := func(pattern string, headers ...policy.Header) {
		text.WriteString(pattern + "\n")
		for _, h := range headers {
			text.WriteString("  " + h.Name + ": " + h.Value + "\n")
		}
	}
	cache := func(how string) policy.Header { return policy.Header{Name: "Cache-Control", Value: how} }
	rule("/*", policy.Headers()...)
	rule("/"+policy.Hashed+"*", cache(policy.Forever))
	for _, path := range []string{"", "index.html", "sw.js", "precache.js", "demos/*"} {
		rule("/"+path, cache(policy.Ask))
	}
	return b.write("_headers", []byte(text.String()))
}

// writeIgnored writes which files Cloudflare, which compresses itself, does not need.
func (b *build) writeIgnored() error {
	return b.write(".assetsignore", []byte("*.br\n*.gz\n.gitkeep\n"))
}
