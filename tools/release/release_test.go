package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/site"
)

// inRepository makes the repository's root the current folder.
func inRepository(t *testing.T) { t.Chdir(filepath.Join("..", "..")) }

// TestReleaseIsReproducible creates a release twice, and checks that both have the same files and
// that the contents of these files are correct.
func TestReleaseIsReproducible(t *testing.T) {
	inRepository(t)
	if _, err := site.Dist(); err != nil {
		t.Skip("skipped:", err)
	}
	page := zipPage(t, "v0.1.0-rc.1")
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
	outs := [2]string{t.TempDir(), t.TempDir()}
	for _, out := range outs {
		if err := run("v0.1.0-rc.1", out, page, []string{"linux/amd64", "windows/amd64"}, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	made := map[string][]byte{}
	entries, err := os.ReadDir(outs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		made[e.Name()] = read(t, filepath.Join(outs[0], e.Name()))
		if !bytes.Equal(made[e.Name()], read(t, filepath.Join(outs[1], e.Name()))) {
			t.Errorf("two releases differ in %s", e.Name())
		}
	}
	const name = "stackglass-0.1.0-rc.1"
	checkSums(t, made)
	files := untar(t, made[name+"-linux-amd64.tar.gz"])
	checkFiles(t, files, name+"-linux-amd64/", "stackglass")
	checkFiles(t, unzip(t, made[name+"-windows-amd64.zip"]), name+"-windows-amd64/", "stackglass.exe")
	checkBill(t, made[name+".cdx.json"])
	checkProgram(t, files[name+"-linux-amd64/stackglass"])
	checkDebian(t, filepath.Join(outs[0], "stackglass_0.1.0~rc.1_amd64.deb"))
}

// zipPage returns the path of an archive of the page with the given version.
func zipPage(t *testing.T, version string) string {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "page.zip")
	if _, err := output("go", "run", "./tools/sitebuild", "-zip", archive, "-version", version); err != nil {
		t.Fatal(err)
	}
	return archive
}

// TestPageOfAnotherVersion checks that the release tool refuses an archive that names another
// version, that contains another page than the command, or that is missing.
func TestPageOfAnotherVersion(t *testing.T) {
	inRepository(t)
	if _, err := site.Dist(); err != nil {
		t.Skip("skipped:", err)
	}
	page := zipPage(t, "v1.2.3")
	if err := checkPage(page, "v1.2.3"); err != nil {
		t.Error(err)
	}
	changed := filepath.Join(t.TempDir(), "changed.zip")
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, content := range unzip(t, read(t, page)) {
		if path.Base(name) == "sw.js" {
			content = append(content, '\n')
		}
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(changed, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ page, version, want string }{
		{page, "v1.2.4", `lacks the line "This is version v1.2.4."; run make release VERSION=v1.2.4`},
		{page, "v1.2.3-rc.1", `lacks the line "This is version v1.2.3-rc.1."`},
		{changed, "v1.2.3", "sw.js differs from site/dist"},
		{"missing.zip", "v1.2.3", "run make release VERSION=v1.2.3"},
	} {
		to := filepath.Join(t.TempDir(), "release")
		if err := run(test.version, to, test.page, nil, io.Discard); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("release of %s with %s = %v, want an error with %q", test.version, filepath.Base(test.page), err, test.want)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("the refused release of %s created its folder", test.version)
		}
	}
}

// TestPageHasNoCommit checks that the programs of the page do not contain the commit. The page of a
// release must be the same before and after the page is committed.
func TestPageHasNoCommit(t *testing.T) {
	dist, err := site.Dist()
	if err != nil {
		t.Skip("skipped:", err)
	}
	programs, err := fs.Glob(dist, "assets/*.wasm")
	if err != nil || len(programs) != 2 {
		t.Fatalf("the page has the programs %v, want two (%v)", programs, err)
	}
	for _, name := range programs {
		if program, err := fs.ReadFile(dist, name); err != nil || bytes.Contains(program, []byte("vcs.revision")) {
			t.Errorf("%s contains the commit that the page was built from (%v)", name, err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func checkSums(t *testing.T, made map[string][]byte) {
	lines := strings.Split(strings.TrimSpace(string(made["SHA256SUMS"])), "\n")
	if len(lines) != len(made)-1 || len(lines) != 5 {
		t.Errorf("SHA256SUMS has %d checksums, but there are %d files", len(lines), len(made))
	}
	for _, line := range lines {
		want, name, _ := strings.Cut(line, "  ")
		if sum := sha256.Sum256(made[name]); hex.EncodeToString(sum[:]) != want {
			t.Errorf("the checksum of %s is wrong", name)
		}
	}
}

func untar(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	packed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(packed); ; {
		header, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func unzip(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range r.File {
		content, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(content); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func checkFiles(t *testing.T, files map[string][]byte, root, program string) {
	t.Helper()
	for name, part := range map[string]string{
		program: "", "LICENSE": "MIT License", "CHANGELOG.md": "# Changelog",
		"third-party.txt":                                 "======== @dagrejs/graphlib",
		"share/man/man1/stackglass.1":                     `.SS "diagnose"`,
		"share/bash-completion/completions/stackglass":    "complete -o default -F __start_stackglass stackglass",
		"share/zsh/site-functions/_stackglass":            "#compdef stackglass",
		"share/fish/vendor_completions.d/stackglass.fish": "complete -c stackglass",
		"share/powershell/stackglass.ps1":                 "Register-ArgumentCompleter",
	} {
		if content := files[root+name]; len(content) == 0 || !bytes.Contains(content, []byte(part)) {
			t.Errorf("%s of %d bytes does not contain %q", root+name, len(content), part)
		}
	}
}

// checkBill checks that the bill of materials lists all parts of the program and of the page.
func checkBill(t *testing.T, text []byte) {
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(b.SerialNumber) {
		t.Errorf("serial number %q", b.SerialNumber)
	}
	urls := map[string]bool{}
	for _, c := range b.Components {
		name, _, _ := strings.Cut(c.PackageURL, "@")
		urls[name] = true
		if c.Version == "" || len(c.Licenses) != 1 || c.Licenses[0].Expression == "" {
			t.Errorf("incomplete: %v", c)
		}
	}
	for _, want := range []string{
		// only Windows builds use mousetrap
		"pkg:golang/github.com/spf13/cobra", "pkg:golang/github.com/inconshreveable/mousetrap",
		"pkg:golang/github.com/vugu/vugu", "pkg:npm/uplot", "pkg:npm/%40dagrejs/graphlib", "pkg:golang/std",
	} {
		if !urls[want] {
			t.Errorf("the bill of materials lacks %s", want)
		}
	}
	for name := range urls {
		if strings.Contains(name, "chromedp") || strings.Contains(name, "axe-core") {
			t.Errorf("%s is in the bill of materials, but not in a release", name)
		}
	}
}

// checkProgram checks that the program in the archive runs without any file from the repository.
func checkProgram(t *testing.T, program []byte) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return
	}
	path := filepath.Join(t.TempDir(), "stackglass")
	if err := os.WriteFile(path, program, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "version")
	cmd.Dir = t.TempDir()
	if got, err := cmd.Output(); string(got) != "stackglass v0.1.0-rc.1\n" {
		t.Errorf("version: %q, %v", got, err)
	}
}

func checkDebian(t *testing.T, path string) {
	if _, err := exec.LookPath("dpkg-deb"); err == nil {
		got, err := exec.Command("dpkg-deb", "--field", path, "Package", "Version", "Architecture").CombinedOutput()
		if want := "Package: stackglass\nVersion: 0.1.0~rc.1\nArchitecture: amd64\n"; string(got) != want || err != nil {
			t.Errorf("dpkg-deb: %s, %v", got, err)
		}
		folder := t.TempDir()
		if said, err := exec.Command("dpkg-deb", "--extract", path, folder).CombinedOutput(); err != nil {
			t.Errorf("dpkg-deb: %v\n%s", err, said)
		}
		if got := read(t, filepath.Join(folder, "usr/share/doc/stackglass/copyright")); !bytes.Contains(got, []byte("Permission is hereby granted")) {
			t.Errorf("copyright: %s", got)
		}
	}
	if _, err := exec.LookPath("lintian"); err != nil {
		t.Skip("skipped: lintian is not installed, so the Debian package is not checked")
	}
	said, err := exec.Command("lintian", "--fail-on", "error,warning", "--no-tag-display-limit", path).CombinedOutput()
	if err != nil {
		t.Errorf("lintian: %v\n%s", err, said)
	}
}

// TestReleaseVersions checks which version names are accepted.
func TestReleaseVersions(t *testing.T) {
	for _, v := range []string{"", "0.1.0", "v1", "v1.2", "v01.2.3", "v1.2.3+meta", "7ca5274-dirty", "v1.2.3 "} {
		if err := run(v, t.TempDir(), "", nil, io.Discard); err == nil || !strings.Contains(err.Error(), "want a version such as v1.2.3") {
			t.Errorf("%q: %v", v, err)
		}
	}
}

// TestDependenciesAreListed checks that DEPENDENCIES.md lists all packages that Go compiles for any
// platform, and all packages in npm's lock file.
func TestDependenciesAreListed(t *testing.T) {
	inRepository(t)
	list, err := readList(listFile)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{} // for each name, whether a release contains the dependency
	folders := map[string]string{}
	add := func(linked bool, env []string, arguments ...string) {
		modules, err := modulesOf(env, arguments...)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range modules {
			used[m.Path] = used[m.Path] || linked
			folders[m.Path] = m.Dir
		}
	}
	for _, system := range []string{"linux", "darwin", "windows"} {
		add(true, []string{"GOOS=" + system}, "./tools/stackglass")
	}
	add(true, []string{"GOOS=js", "GOARCH=wasm"}, "./wasm/app", "./wasm/unpack/program")
	add(false, []string{"GOOS=js", "GOARCH=wasm"}, "-test", "./wasm/...", "./workers/...")
	add(false, nil, "-test", "./...")
	tools, err := output("go", "list", "tool")
	if err != nil {
		t.Fatal(err)
	}
	add(false, nil, strings.Fields(string(tools))...)
	licences := map[string]string{}
	packages, err := packagesOf("site/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	direct := directPackages(t)
	for _, p := range packages {
		// Packages that only wrangler needs are not listed individually.
		if !p.dev || slices.Contains(direct, p.name) {
			used[p.name] = !p.dev
			licences[p.name] = p.licence
		}
	}
	for name, linked := range used {
		if l, found := list[name]; !found || l.linked != linked {
			t.Errorf("the dependency %s is not listed correctly; list %s in %s, with the reason and the licence (linked: %v)", name, name, listFile, linked)
		}
	}
	for name, l := range list {
		if _, found := used[name]; !found {
			t.Errorf("the listed dependency %s is not used", name)
		}
		if want := licences[name]; want != "" && want != l.licence {
			t.Errorf("%s: licence %s, want %s, as in the lock file", name, l.licence, want)
		}
		if folder := folders[name]; folder != "" && name != "github.com/vugu/html" {
			checkLicence(t, name, l.licence, folder)
		}
	}
}

// directPackages returns the names of the packages that package.json lists.
func directPackages(t *testing.T) (names []string) {
	var wanted struct {
		Dependencies, DevDependencies map[string]string
	}
	if err := json.Unmarshal(read(t, "site/package.json"), &wanted); err != nil {
		t.Fatal(err)
	}
	for _, list := range []map[string]string{wanted.Dependencies, wanted.DevDependencies} {
		for name := range list {
			names = append(names, name)
		}
	}
	return names
}

// licencePhrases contains, for each licence, a phrase that identifies the licence.
var licencePhrases = map[string]string{
	"MIT":          "Permission is hereby granted, free of charge",
	"BSD-2-Clause": "Redistribution and use in source and binary forms",
	"BSD-3-Clause": "either the name of",
	"Apache-2.0":   "Apache License",
	"MPL-2.0":      "Mozilla Public License Version 2.0",
	"CC-BY-4.0":    "Creative Commons Attribution 4.0 International",
	"OFL-1.1":      "SIL OPEN FONT LICENSE Version 1.1",
	"FTL":          "The FreeType License",
}

// checkLicence checks that the listed licences match the licence files in a module.
func checkLicence(t *testing.T, name, licence, folder string) {
	t.Helper()
	texts, err := licenceFiles(folder)
	if err != nil {
		t.Error(err)
		return
	}
	text := strings.Join(strings.Fields(strings.Join(texts, "\n")), " ")
	listed := strings.Split(licence, " AND ")
	for _, l := range listed {
		if licencePhrases[l] == "" || !strings.Contains(text, licencePhrases[l]) {
			t.Errorf("%s: its licence files do not contain %s", name, l)
		}
	}
	for l, mark := range licencePhrases {
		if l == "BSD-2-Clause" && slices.Contains(listed, "BSD-3-Clause") || name == "codeberg.org/go-fonts/liberation" && l == "MIT" {
			continue // the BSD licences begin with the same text, and the font licence begins with a similar text
		}
		if strings.Contains(text, mark) && !slices.Contains(listed, l) {
			t.Errorf("%s: its licence files also contain %s", name, l)
		}
	}
}
