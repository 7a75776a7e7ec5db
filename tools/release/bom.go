package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

var regexpCopyright = regexp.MustCompile(`(?m)^Copyright .*$`)

// dependency is a Go module or npm package that the command or the page contains.
type dependency struct {
	name, version string
	npm           bool
	sha512        []byte // checksum of an npm package's archive
	sum           string // checksum of a Go module in the format of go.sum
}

// dependencies contains the dependencies of a release, and the list in DEPENDENCIES.md.
type dependencies struct {
	parts  map[string]dependency // the dependencies that the release contains, by name
	listed map[string]listEntry
	golang string // the version of Go, such as go1.26.0
}

// listEntry is a row in a table of DEPENDENCIES.md.
type listEntry struct {
	linked  bool // whether the dependency is part of the command or the page
	licence string
}

const listFile = "tools/release/DEPENDENCIES.md"

// readDependencies reads DEPENDENCIES.md, and collects the page's Go modules and npm packages.
func readDependencies() (*dependencies, error) {
	d := &dependencies{parts: map[string]dependency{}}
	var err error
	if d.listed, err = readList(listFile); err != nil {
		return nil, err
	}
	modules, err := modulesOf([]string{"GOOS=js", "GOARCH=wasm"}, "./wasm/app", "./wasm/unpack/program")
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		d.parts[m.Path] = dependency{name: m.Path, version: m.Version}
	}
	packages, err := packagesOf("site/package-lock.json")
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		if !p.dev {
			d.parts[p.name] = p.dependency
		}
	}
	return d, nil
}

var row = regexp.MustCompile(`^\| (\S+) \| [^|]+ \| ([^|]+) \|$`)

// readList reads the tables of DEPENDENCIES.md.
func readList(path string) (map[string]listEntry, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list := map[string]listEntry{}
	linked := true
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "## Only for") {
			linked = false
		}
		if m := row.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil && m[1] != "name" {
			list[m[1]] = listEntry{linked, m[2]}
		}
	}
	return list, nil
}

// module describes a module as `go list` prints it.
type module struct{ Path, Version, Dir string }

// modulesOf returns the modules on which the given packages depend, except this module.
func modulesOf(env []string, arguments ...string) (list []module, err error) {
	const format = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}"
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", format}, arguments...)...)
	cmd.Env = append(os.Environ(), env...)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, messages.Bytes())
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) == 3 && !slices.ContainsFunc(list, func(m module) bool { return m.Path == fields[0] }) {
			list = append(list, module{fields[0], fields[1], fields[2]})
		}
	}
	return list, nil
}

// npmPackage is a package that the lock file lists.
type npmPackage struct {
	dependency
	dev     bool
	licence string
}

// packagesOf returns the packages in an npm lock file.
func packagesOf(path string) (list []npmPackage, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version, Integrity, License string
			Dev                         bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for place, p := range lock.Packages {
		name, found := strings.CutPrefix(place, "node_modules/")
		if !found {
			continue
		}
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Integrity, "sha512-"))
		if err != nil || len(sum) != 64 {
			return nil, fmt.Errorf("%s: %s: integrity %q, want sha512- and 64 bytes in base64", path, name, p.Integrity)
		}
		list = append(list, npmPackage{dependency{name: name, version: p.Version, npm: true, sha512: sum}, p.Dev, p.License})
	}
	slices.SortFunc(list, func(a, b npmPackage) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

// addLinkedModules adds the modules that are linked into a program.
func (d *dependencies) addLinkedModules(program []byte) error {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return err
	}
	d.golang = info.GoVersion
	for _, m := range info.Deps {
		d.parts[m.Path] = dependency{name: m.Path, version: m.Version, sum: m.Sum}
	}
	return nil
}

// sortedParts returns the dependencies of the release in the order of their names. It returns an
// error if any of these dependencies is not listed in DEPENDENCIES.md.
func (d *dependencies) sortedParts() (list []dependency, err error) {
	for name, p := range d.parts {
		if !d.listed[name].linked {
			err = errors.Join(err, fmt.Errorf("the release contains %s; add it to the first table of %s", name, listFile))
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b dependency) int { return strings.Compare(a.name, b.name) })
	return list, err
}

// licences returns the licence texts of Go's standard library, and of every dependency in the first
// table of DEPENDENCIES.md.
func (d *dependencies) licences() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("stackglass contains the following libraries. The licences of these libraries follow.\n")
	add := func(name, folder string) error {
		texts, err := licenceFiles(folder)
		for _, text := range texts {
			out.WriteString("\n\n======== " + name + "\n\n" + strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) + "\n")
		}
		return err
	}
	root, err := output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if err := add("the Go standard library", strings.TrimSpace(string(root))); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(d.listed)) {
		if !d.listed[name].linked {
			continue
		}
		folder := filepath.Join("site", "node_modules", name)
		if strings.Contains(strings.SplitN(name, "/", 2)[0], ".") {
			text, err := output("go", "mod", "download", "-json", name)
			var downloaded struct{ Dir string }
			if err == nil {
				err = json.Unmarshal(text, &downloaded)
			}
			if err != nil {
				return nil, err
			}
			folder = downloaded.Dir
		}
		if err := add(name, folder); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// licenceFiles returns the texts of the licence files in the folder of a library.
func licenceFiles(folder string) (texts []string, err error) {
	for _, pattern := range []string{"LICEN[CS]E*", "license*", "COPYING*", "licenses/*"} {
		names, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil {
				return nil, err
			}
			if info.IsDir() {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			texts = append(texts, string(text))
		}
	}
	if len(texts) == 0 {
		return nil, errors.New(folder + " contains no licence file")
	}
	return texts, nil
}

// These types represent the elements of the CycloneDX format, version 1.5, that the bill of
// materials uses.
type (
	bill struct {
		Format       string      `json:"bomFormat"`
		Specified    string      `json:"specVersion"`
		SerialNumber string      `json:"serialNumber"`
		Version      int         `json:"version"`
		Metadata     metadata    `json:"metadata"`
		Components   []component `json:"components"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licenses   []license  `json:"licenses,omitempty"`
		PackageURL string     `json:"purl"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	license struct {
		Expression string `json:"expression"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
)

// bom returns the software bill of materials.
func (r *release) bom() ([]byte, error) {
	parts, err := r.dependencies.sortedParts()
	if err != nil {
		return nil, err
	}
	b := bill{
		Format: "CycloneDX", Specified: "1.5", Version: 1,
		Metadata: metadata{r.time.Format(time.RFC3339), component{
			Type: "application", Name: "stackglass", Version: r.version, Licenses: []license{{"MIT"}},
			PackageURL: "pkg:golang/github.com/stackglass/stackglass@v" + r.version,
		}},
	}
	for _, p := range parts {
		c := component{Type: "library", Name: p.name, Version: p.version, Licenses: []license{{r.dependencies.listed[p.name].licence}}}
		if p.npm {
			c.PackageURL = "pkg:npm/" + strings.ReplaceAll(p.name, "@", "%40") + "@" + p.version
			c.Hashes = []hash{{"SHA-512", hex.EncodeToString(p.sha512)}}
		} else {
			c.PackageURL = "pkg:golang/" + strings.ReplaceAll(url.PathEscape(strings.ToLower(p.name)), "%2F", "/") + "@" + p.version
			if p.sum != "" {
				c.Properties = []property{{"go.sum", p.sum}}
			}
		}
		b.Components = append(b.Components, c)
	}
	golang := strings.TrimPrefix(r.dependencies.golang, "go")
	b.Components = append(b.Components, component{Type: "library", Name: "Go standard library", Version: golang, Licenses: []license{{"BSD-3-Clause"}}, PackageURL: "pkg:golang/std@" + golang})
	plain, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	// The serial number is a UUID of version 8, computed from the content.
	sum := sha256.Sum256(plain)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	b.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}
