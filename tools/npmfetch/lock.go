package main

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// pinned is one package of a lock file.
type pinned struct {
	name    string // "uplot", "@scope/name"
	version string
	sha512  []byte // of the archive
	needs   []string
	likes   []string // packages that it can do without, most for other machines
	fits    bool     // this machine
}

// A name and a version become part of paths and addresses, so only what npm
// itself allows there is taken.
var (
	nameWanted    = regexp.MustCompile(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*$`)
	versionWanted = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)
)

// readLock reads what a package-lock.json of version 3 pins, in the order of
// the names.
func readLock(file string) ([]pinned, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var lock struct {
		LockfileVersion int `json:"lockfileVersion"`
		Packages        map[string]struct {
			Version, Integrity                 string
			Link                               bool
			Dependencies, OptionalDependencies map[string]string
			OS, CPU, Libc                      []string
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if lock.LockfileVersion != 3 {
		return nil, fmt.Errorf("%s: lockfileVersion %d, want 3, as npm 7 and later write it", file, lock.LockfileVersion)
	}
	var list []pinned
	for place, p := range lock.Packages {
		if place == "" {
			continue // the folder itself
		}
		name, found := strings.CutPrefix(place, "node_modules/")
		if !found || p.Link || !nameWanted.MatchString(name) {
			return nil, fmt.Errorf("%s: package %q, want node_modules/NAME; nested packages and links are for npm", file, place)
		}
		if !versionWanted.MatchString(p.Version) {
			return nil, fmt.Errorf("%s: %s: version %q, want one as in 1.2.3", file, name, p.Version)
		}
		sum, found := strings.CutPrefix(p.Integrity, "sha512-")
		digest, err := base64.StdEncoding.DecodeString(sum)
		if !found || err != nil || len(digest) != 64 {
			return nil, fmt.Errorf("%s: %s: integrity %q, want sha512- and 64 bytes in base64", file, name, p.Integrity)
		}
		list = append(list, pinned{
			name: name, version: p.Version, sha512: digest,
			needs: slices.Sorted(maps.Keys(p.Dependencies)), likes: slices.Sorted(maps.Keys(p.OptionalDependencies)),
			fits: fits(p.OS, system(runtime.GOOS)) && fits(p.CPU, processor(runtime.GOARCH)) && fits(p.Libc, libc()),
		})
	}
	slices.SortFunc(list, func(a, b pinned) int { return cmp.Compare(a.name, b.name) })
	return list, nil
}

// wanted gives the packages of these names and those that they need; without names,
// all packages. Those that are not for this machine are left out.
func wanted(all []pinned, names []string) ([]pinned, error) {
	byName := map[string]pinned{}
	for _, p := range all {
		byName[p.name] = p
	}
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(byName))
	}
	var list []pinned
	for queue := slices.Clone(names); len(queue) > 0; queue = queue[1:] {
		p, found := byName[queue[0]]
		if !found {
			return nil, fmt.Errorf("package %s is not in the lock file: npm install --package-lock-only enters what package.json names", queue[0])
		}
		if !p.fits || slices.ContainsFunc(list, func(q pinned) bool { return q.name == p.name }) {
			continue
		}
		list = append(list, p)
		queue = append(queue, p.needs...)
		for _, name := range p.likes {
			if _, found := byName[name]; found {
				queue = append(queue, name)
			}
		}
	}
	slices.SortFunc(list, func(a, b pinned) int { return cmp.Compare(a.name, b.name) })
	return list, nil
}

// fits tells whether a package that is for some systems only, if any are named, is
// for this one.
func fits(named []string, this string) bool {
	return len(named) == 0 || slices.Contains(named, this)
}

// system and processor give npm's names of what Go names otherwise.
func system(goos string) string {
	if goos == "windows" {
		return "win32"
	}
	return goos
}

func processor(goarch string) string {
	switch goarch {
	case "amd64":
		return "x64"
	case "386":
		return "ia32"
	}
	return goarch
}

// libc is the C library that programs of this machine use.
func libc() string {
	if musl, _ := filepath.Glob("/lib/ld-musl-*"); len(musl) > 0 {
		return "musl"
	}
	return "glibc"
}

// address is where a registry keeps the package's archive.
func (p pinned) address(registry string) string {
	return registry + "/" + p.name + "/-/" + path.Base(p.name) + "-" + p.version + ".tgz"
}

func (p pinned) String() string { return p.name + "@" + p.version }

// installed tells whether folder holds the package. A folder gets its name only
// when it is whole, so its own word is enough.
func (p pinned) installed(folder string) bool {
	text, err := os.ReadFile(filepath.Join(folder, "package.json"))
	var own struct{ Name, Version string }
	return err == nil && json.Unmarshal(text, &own) == nil && own.Name == p.name && own.Version == p.version
}
