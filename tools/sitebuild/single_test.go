package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/site"
)

// singlePage builds the single-file page from stand-ins, and returns its text.
func singlePage(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "new", "stackglass.html")
	if err := buildSite(t).writeSingle(to); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestPolicyOfSingleFile checks that the policy lists exactly the hashes of the scripts and styles
// in the page, and that the page loads nothing from other places.
func TestPolicyOfSingleFile(t *testing.T) {
	page := singlePage(t)
	meta := policyMeta.FindString(page)
	if meta == "" {
		t.Fatal("the single file has no policy")
	}
	rules := html.UnescapeString(meta)
	inside := regexp.MustCompile(`(?s)<(script|style)([^>]*)>(.*?)</(?:script|style)>`).FindAllStringSubmatch(page, -1)
	hashes := 0
	for _, m := range inside {
		if strings.Contains(m[2], "text/plain") {
			continue
		}
		hashes++
		_, allowed, _ := strings.Cut(rules, m[1]+"-src ")
		allowed, _, _ = strings.Cut(allowed, ";")
		if !strings.Contains(allowed, policyHash(m[3])) {
			t.Errorf("the policy does not allow %s%s: %.60q", m[1], m[2], m[3])
		}
	}
	if n := strings.Count(rules, "'sha256-"); n != hashes || n < 8 {
		t.Errorf("the policy has %d hashes for %d scripts and styles", n, hashes)
	}
	if found := outside.FindString(page); found != "" || strings.Contains(page, "assets/") {
		t.Errorf("it loads %q", found)
	}
}

// TestSingleFileContainsEveryFile checks that the programs, demos and sources in the single-file
// page can be extracted unchanged.
func TestSingleFileContainsEveryFile(t *testing.T) {
	page, found := singlePage(t), map[string]string{}
	for _, m := range regexp.MustCompile(`<script type="text/plain" data-file="([^"]+)">([^<]*)</script>`).FindAllStringSubmatch(page, -1) {
		packed, err := base64.StdEncoding.DecodeString(m[2])
		if err != nil {
			found[m[1]] = m[2] // the extracted element is a script
			continue
		}
		unzipped, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(unzipped)
		if err != nil {
			t.Fatal(err)
		}
		found[m[1]] = string(content)
	}
	for _, name := range []string{"app.wasm", "app.names", "unpack.wasm", "worker.js"} {
		if found[name] != "/* "+name+" */" {
			t.Errorf("%s is %q", name, found[name])
		}
	}
	list, err := site.Demos()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		for _, name := range []string{d.File, d.Source} {
			want, err := site.DemoFile(name)
			if err != nil || found["demos/"+name] != string(want) {
				t.Errorf("demos/%s is %d bytes long, want %d (%v)", name, len(found["demos/"+name]), len(want), err)
			}
		}
	}
	if !strings.Contains(found["manual.html"], `<article id="tutorial">`) {
		t.Error("the single file has no manual")
	}
	if want := 5 + 2*len(list); len(found) != want {
		t.Errorf("the single file contains %d files, want %d", len(found), want)
	}
}

func TestScriptsWithEndTag(t *testing.T) {
	for _, text := range []string{`a = "</script>"`, `a = "</SCRIPT>"`, "<!-- a"} {
		if element, err := inlineScript("", []byte(text)); err == nil {
			t.Errorf("%q became %q", text, element)
		}
	}
}

func TestSingleFileRejectsOtherPages(t *testing.T) {
	if err := (&build{out: t.TempDir(), log: io.Discard}).writeSingle("none"); err == nil || !strings.Contains(err.Error(), "build the folder first") {
		t.Errorf("writeSingle of an empty folder = %v, want an error", err)
	}
	b := buildSite(t)
	if err := os.WriteFile(filepath.Join(b.out, "index.html"), []byte("<html lang=en>"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := b.writeSingle("none"); err == nil || !strings.Contains(err.Error(), "index.html has no ") {
		t.Errorf("writeSingle of a page without scripts = %v, want an error", err)
	}
}

// TestBundle checks that the archive is reproducible, and contains every uncompressed file, the
// page as a single file, and a README.txt that names the version.
func TestBundle(t *testing.T) {
	b := buildSite(t)
	if err := b.write("index.html.br", []byte("packed")); err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join(t.TempDir(), "a.zip"), filepath.Join(t.TempDir(), "b.zip")
	for _, to := range []string{first, second} {
		if err := b.writeBundle(to, "v1.2.3"); err != nil {
			t.Fatal(err)
		}
	}
	one, err1 := os.ReadFile(first)
	two, err2 := os.ReadFile(second)
	if err1 != nil || err2 != nil || !bytes.Equal(one, two) {
		t.Errorf("two archives of the same folder differ (%v, %v)", err1, err2)
	}
	archive, err := zip.NewReader(bytes.NewReader(one), int64(len(one)))
	if err != nil {
		t.Fatal(err)
	}
	for name, has := range map[string]string{
		"README.txt": "This is version v1.2.3.", "stackglass.html": `data-single="1"`, "index.html": "<title>stackglass</title>", "_headers": "Content-Security-Policy",
		b.hashed["app.wasm"]: "app.wasm", "demos/ring.sgt": "",
	} {
		file, err := archive.Open(bundleFolder + name)
		if err != nil {
			t.Error(err)
			continue
		}
		content, err := io.ReadAll(file)
		if err != nil || !strings.Contains(string(content), has) {
			t.Errorf("%s lacks %q (%v)", name, has, err)
		}
	}
	if _, err := archive.Open(bundleFolder + "index.html.br"); err == nil {
		t.Error("the archive contains a compressed file")
	}
}
