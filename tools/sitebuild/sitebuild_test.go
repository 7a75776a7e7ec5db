package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/stackglass/stackglass/site"
	"github.com/stackglass/stackglass/site/policy"
)

// TestMain runs the tests in the repository's root, because sitebuild also runs there.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestUnknownVuguScript(t *testing.T) {
	for _, script := range []string{"", "readString(){readString(){"} {
		if _, err := editScript(script); err == nil {
			t.Errorf("editScript accepted %q as Vugu's script", script)
		}
	}
}

func TestHelperScript(t *testing.T) {
	b := &build{out: t.TempDir(), log: io.Discard}
	if err := b.extractHelper(); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(b.out, b.hashed["vugu.js"]))
	if err != nil {
		t.Fatal(err)
	}
	// The script start.js makes the function "eval" ignore a text that begins like Vugu's script,
	// and wraps two functions of Vugu's script.
	start, err := os.ReadFile("site/static/start.js")
	if err != nil {
		t.Fatal(err)
	}
	const begin = "(function(){if(window.vuguRender)return;"
	if !bytes.HasPrefix(script, []byte(begin)) || !bytes.Contains(start, []byte(begin)) {
		t.Errorf("vugu.js begins with %.60q; adapt start.js, which must recognise this text", script)
	}
	for _, name := range []string{"window.vuguRender=function", "window.vuguSetEventHandler=function"} {
		if !bytes.Contains(script, []byte(name)) {
			t.Errorf("vugu.js does not contain %s, which start.js wraps", name)
		}
	}
}

// The page is compiled with a reduced version of Vugu. The parts of Vugu that remain work as in the
// original version, and the page does not need the removed parts. If an update of Vugu changes
// these parts, these tests fail, or encoding/json is linked again.
func TestReducedVugu(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-tags="+buildTags, "./wasm/app")
	list.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	packages, err := list.Output()
	if err != nil || !bytes.Contains(packages, []byte("\ngithub.com/vugu/vjson\n")) {
		t.Fatalf("%s, %v", packages, err)
	}
	if bytes.Contains(packages, []byte("\nencoding/json\n")) {
		t.Error("the page is compiled with encoding/json")
	}
	if text, err := exec.Command("go", "test", "-tags="+buildTags, "./ui").CombinedOutput(); err != nil {
		t.Errorf("%s", text)
	}
}

func TestStringConstant(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.go")
	if err := os.WriteFile(file, []byte("package x\n\nconst a, b = 1, \"it's\\n\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := stringConstant(file, "b"); err != nil || got != "it's\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, name := range []string{"a", "c"} {
		if got, err := stringConstant(file, name); err == nil {
			t.Errorf("constant %s: %q", name, got)
		}
	}
}

// The list standIns contains the files that need a compiler or the network. Tests replace these
// files with stand-ins.
var standIns = []string{"app.wasm", "app.names", "unpack.wasm", "worker.js", "wasm_exec.js", "vugu.js", "uplot.js", "uplot.css", "graph.js"}

// buildSite builds the files of the site that need neither a compiler nor the network. It uses
// stand-ins for all other files.
func buildSite(t *testing.T) *build {
	b := &build{out: t.TempDir(), log: io.Discard}
	for _, name := range standIns {
		if err := b.write(name, []byte("/* "+name+" */")); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []func() error{b.copyStatic, b.joinParts, b.copyDemos, b.writeManual, b.writeIndex, b.writeHeaders, b.writePrecache} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestReproducibleBuild(t *testing.T) {
	one, two := buildSite(t), buildSite(t)
	names, err := one.files()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		a, err1 := os.ReadFile(filepath.Join(one.out, name))
		b, err2 := os.ReadFile(filepath.Join(two.out, name))
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs between two builds (%v, %v)", name, err1, err2)
		}
	}
}

func TestIndexPolicy(t *testing.T) {
	b := buildSite(t)
	content, err := os.ReadFile(filepath.Join(b.out, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	for _, part := range []string{"<script>", " style=", "<style", " onclick", "http://", "https://"} {
		if strings.Contains(page, part) {
			t.Errorf("index.html contains %q, which the policy forbids or which leads outside the site", part)
		}
	}
	list, err := site.Demos()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		if !strings.Contains(page, `id="demo-`+d.Name+`"`) {
			t.Errorf("there is no card for demo %s", d.Name)
		}
	}
	headers, err := os.ReadFile(filepath.Join(b.out, "_headers"))
	if err != nil || !strings.Contains(string(headers), "Content-Security-Policy: "+policy.Content+"\n") {
		t.Errorf("_headers lacks the policy: %s, %v", headers, err)
	}
}

func TestPrecacheListsServedFiles(t *testing.T) {
	b := buildSite(t)
	list, err := os.ReadFile(filepath.Join(b.out, "precache.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"index.html", b.hashed["page.css"], b.hashed["page.js"], "demos/matmul-naive.sgt"} {
		if !bytes.Contains(list, []byte(`["`+name+`", "`)) {
			t.Errorf("precache.js lacks %s", name)
		}
	}
	for _, h := range policy.Headers() {
		if has, want := bytes.Contains(list, []byte(`["`+h.Name+`", "`+h.Value+`"]`)), h.Name != "X-Content-Type-Options"; has != want {
			t.Errorf("precache.js contains the header %s: %t, want %t", h.Name, has, want)
		}
	}
	for _, name := range neverRequested {
		if bytes.Contains(list, []byte(`["`+name+`"`)) {
			t.Errorf("precache.js has %s", name)
		}
	}
}

// TestNamesHaveHashes checks that the name of each script, style sheet and program contains a hash
// of its content, so that the name changes if the content changes.
func TestNamesHaveHashes(t *testing.T) {
	b := buildSite(t)
	names, err := b.files()
	if err != nil {
		t.Fatal(err)
	}
	hashed := 0
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(b.out, name))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		has := strings.Contains(name, "."+hex.EncodeToString(sum[:8])+".")
		switch {
		case strings.HasPrefix(name, policy.Hashed) != has:
			t.Errorf("%[1]s: hash of the content in the name: %[2]t, want %[3]t", name, has, !has)
		case has:
			hashed++
		case hashable(name):
			t.Errorf("%s is in the folder of files with fixed names", name)
		}
	}
	if hashed < 11 {
		t.Errorf("only %d files have hashes", hashed)
	}
}

// TestAddressesExist checks that every URL in index.html is relative to the page, and that its file
// exists. The test also checks that the files in the query of a worker's URL, which are relative to
// the worker's script, exist.
func TestAddressesExist(t *testing.T) {
	b := buildSite(t)
	content, err := os.ReadFile(filepath.Join(b.out, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range regexp.MustCompile(` (?:src|href|data-(?:file|source|program|worker|unpacker|matrix|graph))="([^"#][^"]*)"`).FindAllStringSubmatch(string(content), -1) {
		at, err := url.Parse(html.UnescapeString(m[1]))
		if err != nil || at.IsAbs() || strings.HasPrefix(at.Path, "/") {
			t.Fatalf("%s: %v, want a relative URL", m[0], err)
		}
		queue := []*url.URL{at}
		for ; len(queue) > 0; queue = queue[1:] {
			at := queue[0]
			if _, err := os.Stat(filepath.Join(b.out, at.Path)); err != nil {
				t.Errorf("%s: %v", m[0], err)
			}
			found++
			for _, values := range at.Query() {
				next, err := at.Parse(values[0])
				if err != nil {
					t.Fatal(err)
				}
				queue = append(queue, next)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d URLs were found", found)
	}
}

func TestBrotli(t *testing.T) {
	t.Chdir(t.TempDir())
	content := []byte(strings.Repeat("stack distance ", 1000))
	for range 2 { // the second run reads the files from the cache
		packed, err := brotliContent(content)
		if err != nil {
			t.Fatal(err)
		}
		back, err := io.ReadAll(brotli.NewReader(bytes.NewReader(packed)))
		if err != nil || !bytes.Equal(back, content) {
			t.Fatalf("decompressed %d bytes, want the original %d bytes; error %v", len(back), len(content), err)
		}
	}
	if kept, _ := filepath.Glob("build/brotli/*"); len(kept) != 1 {
		t.Errorf("kept %q", kept)
	}
}

// TestFirstVisitSize checks that the size of a first visit does not include files that are loaded
// later.
func TestFirstVisitSize(t *testing.T) {
	t.Chdir(t.TempDir())
	var said bytes.Buffer
	b := &build{out: "dist", log: &said}
	sizes := map[string]int{}
	for _, name := range []string{"app.wasm", unpacker} {
		content := []byte(strings.Repeat(name, 1000))
		if err := b.write(name, content); err != nil {
			t.Fatal(err)
		}
		packed, err := brotliContent(content)
		if err != nil {
			t.Fatal(err)
		}
		sizes[name] = len(packed)
	}
	if err := b.compressAll(); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("first visit: %d bytes as brotli\nlater, on demand or for offline use: %d bytes\n", sizes["app.wasm"], sizes[unpacker])
	if said.String() != want {
		t.Errorf("the output is %q, want %q", said.String(), want)
	}
}
