package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/site/policy"
)

// The names of scripts, styles and programs contain a hash of the content, and these files are in a
// separate folder. Browsers and hosts may therefore cache these files for ever, and a running page
// never receives files of a different version. Files that people or browsers request by a fixed
// name have no hash: the page, the service worker and its list, the icon, and the demos.

// fixedNames lists the scripts that browsers request under fixed names.
var fixedNames = []string{"sw.js", "precache.js"}

func hashable(name string) bool {
	switch path.Ext(name) {
	case ".js", ".css", ".wasm", ".names":
		return !slices.Contains(fixedNames, name)
	}
	return false
}

// hashedName returns the name of a file in the output folder, for example
// assets/app.0123456789abcdef.wasm.
func (b *build) hashedName(name string, content []byte) string {
	sum := sha256.Sum256(content)
	ending := path.Ext(name)
	hashed := policy.Hashed + strings.TrimSuffix(name, ending) + "." + hex.EncodeToString(sum[:8]) + ending
	if b.hashed == nil {
		b.hashed = map[string]string{}
	}
	b.hashed[name] = hashed
	return hashed
}

// urlOf returns the URL of a file, relative to the page.
func (b *build) urlOf(name string) (string, error) {
	if !hashable(name) {
		return name, nil
	}
	hashed, made := b.hashed[name]
	if !made {
		return "", fmt.Errorf("the page refers to %s, which was not built", name)
	}
	return hashed, nil
}

// workerURL returns the URL of the worker script that runs a program. The query of the URL contains
// the relative URLs of the files that the script loads, and the URL of the worker that runs the
// unpacker.
func (b *build) workerURL(program string) (string, error) {
	script, err := b.urlOf("worker.js")
	if err != nil {
		return "", err
	}
	settings := url.Values{}
	for setting, name := range map[string]string{"exec": "wasm_exec.js", "wasm": program} {
		file, err := b.urlOf(name)
		if err != nil {
			return "", err
		}
		settings.Set(setting, path.Base(file))
	}
	if program != unpacker {
		script, err := b.workerURL(unpacker)
		if err != nil {
			return "", err
		}
		settings.Set("unpack", path.Base(script))
	}
	return script + "?" + settings.Encode(), nil
}

// writeHeaders writes the _headers file for static hosts. Some hosts send all values if several
// rules set the same header, so the rule for all files does not set Cache-Control.
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
	for _, path := range []string{"", "index.html", "sw.js", "precache.js", "demos/*", "docs/*"} {
		rule("/"+path, cache(policy.Ask))
	}
	return b.write("_headers", []byte(text.String()))
}

// writeIgnored writes a list of files that Cloudflare does not need: the compressed copies, because
// Cloudflare compresses files itself.
func (b *build) writeIgnored() error {
	return b.write(".assetsignore", []byte("*.br\n*.gz\n.gitkeep\n"))
}

// neverRequested lists the files that the service worker need not store, because the page never
// requests them.
var neverRequested = append([]string{"_headers"}, fixedNames...)

// files returns the sorted slash-separated paths of the files in the output folder.
func (b *build) files() ([]string, error) {
	var names []string
	err := filepath.WalkDir(b.out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if strings.HasPrefix(entry.Name(), ".") {
			return nil
		}
		rel, err := filepath.Rel(b.out, path)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	slices.Sort(names)
	return names, err
}

// writePrecache writes the list of files for the service worker: each file with a hash of its
// content, a hash over all files as the version, and the headers of the service worker's responses.
func (b *build) writePrecache() error {
	names, err := b.files()
	if err != nil {
		return err
	}
	var list bytes.Buffer
	all := sha256.New()
	for _, name := range names {
		if slices.Contains(neverRequested, name) || strings.HasSuffix(name, ".map") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(b.out, name))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		all.Write(sum[:])
		list.WriteString("  [" + strconv.Quote(name) + ", " + strconv.Quote(hex.EncodeToString(sum[:8])) + "],\n")
	}
	var headers bytes.Buffer
	for _, h := range policy.Headers() {
		if h.Name == "X-Content-Type-Options" {
			continue // without this header, browsers would reject scripts from hosts that know few content types
		}
		all.Write([]byte(h.Name + h.Value))
		headers.WriteString("  [" + strconv.Quote(h.Name) + ", " + strconv.Quote(h.Value) + "],\n")
	}
	script := "// Code generated by tools/sitebuild; DO NOT EDIT.\n" +
		"self.stackglassVersion = " + strconv.Quote(hex.EncodeToString(all.Sum(nil)[:8])) + ";\n" +
		"self.stackglassHeaders = [\n" + headers.String() + "];\n" +
		"self.stackglassFiles = [\n" + list.String() + "];\n"
	return b.write("precache.js", []byte(script))
}
