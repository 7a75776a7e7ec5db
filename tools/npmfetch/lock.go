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

// lockedPackage is a package that the lock file lists.
type lockedPackage struct {
	name           string // the package's name, such as "uplot" or "@scope/name"
	version        string
	sha512         []byte // SHA-512 checksum of the archive
	needs          []string
	optional       []string // names of optional dependencies, most of which are for other machines
	forThisMachine bool     // whether the package is for this machine
}

// Names and versions become parts of paths and URLs, so only names and versions that npm allows are
// accepted.
var (
	nameWanted    = regexp.MustCompile(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*$`)
	versionWanted = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)
)

// readLock reads the packages of a package-lock.json of version 3, in the order of their names.
func readLock(file string) ([]lockedPackage, error) {
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
		return nil, fmt.Errorf("%s: lockfileVersion %d, want 3, which npm 7 and later write", file, lock.LockfileVersion)
	}
	var list []lockedPackage
	for place, p := range lock.Packages {
		if place == "" {
			continue // the root package, which is not installed
		}
		name, found := strings.CutPrefix(place, "node_modules/")
		if !found || p.Link || !nameWanted.MatchString(name) {
			return nil, fmt.Errorf("%s: package %q, want node_modules/NAME; nested packages and links need npm", file, place)
		}
		if !versionWanted.MatchString(p.Version) {
			return nil, fmt.Errorf("%s: %s: version %q, want a version such as 1.2.3", file, name, p.Version)
		}
		sum, found := strings.CutPrefix(p.Integrity, "sha512-")
		digest, err := base64.StdEncoding.DecodeString(sum)
		if !found || err != nil || len(digest) != 64 {
			return nil, fmt.Errorf("%s: %s: integrity %q, want sha512- and 64 bytes in base64", file, name, p.Integrity)
		}
		list = append(list, lockedPackage{
			name: name, version: p.Version, sha512: digest,
			needs: slices.Sorted(maps.Keys(p.Dependencies)), optional: slices.Sorted(maps.Keys(p.OptionalDependencies)),
			forThisMachine: matchesSystem(p.OS, npmName(runtime.GOOS)) && matchesSystem(p.CPU, npmName(runtime.GOARCH)) && matchesSystem(p.Libc, libc()),
		})
	}
	slices.SortFunc(list, func(a, b lockedPackage) int { return cmp.Compare(a.name, b.name) })
	return list, nil
}

// selectPackages returns the packages with the given names and their dependencies. Without names,
// it returns all packages. It omits packages for other machines.
func selectPackages(all []lockedPackage, names []string) ([]lockedPackage, error) {
	byName := map[string]lockedPackage{}
	for _, p := range all {
		byName[p.name] = p
	}
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(byName))
	}
	var list []lockedPackage
	for queue := slices.Clone(names); len(queue) > 0; queue = queue[1:] {
		p, found := byName[queue[0]]
		if !found {
			return nil, fmt.Errorf("package %s is not in the lock file; run npm install --package-lock-only to add the packages in package.json", queue[0])
		}
		if !p.forThisMachine || slices.ContainsFunc(list, func(q lockedPackage) bool { return q.name == p.name }) {
			continue
		}
		list = append(list, p)
		queue = append(queue, p.needs...)
		for _, name := range p.optional {
			if _, found := byName[name]; found {
				queue = append(queue, name)
			}
		}
	}
	slices.SortFunc(list, func(a, b lockedPackage) int { return cmp.Compare(a.name, b.name) })
	return list, nil
}

// matchesSystem reports whether a package is for the current system. This is the case if the list
// of allowed systems is empty or contains the current system.
func matchesSystem(allowed []string, current string) bool {
	return len(allowed) == 0 || slices.Contains(allowed, current)
}

// npmName returns npm's name for an operating system or processor.
func npmName(name string) string {
	return cmp.Or(map[string]string{"windows": "win32", "amd64": "x64", "386": "ia32"}[name], name)
}

// libc returns the C library of this machine.
func libc() string {
	if musl, _ := filepath.Glob("/lib/ld-musl-*"); len(musl) > 0 {
		return "musl"
	}
	return "glibc"
}

// archiveURL returns the URL of the package's archive in the given registry.
func (p lockedPackage) archiveURL(registry string) string {
	return registry + "/" + p.name + "/-/" + path.Base(p.name) + "-" + p.version + ".tgz"
}

func (p lockedPackage) String() string { return p.name + "@" + p.version }

// isInstalled reports whether a folder contains the package. Folders get their final names only
// when they are complete, so it is sufficient to check package.json.
func (p lockedPackage) isInstalled(folder string) bool {
	text, err := os.ReadFile(filepath.Join(folder, "package.json"))
	var own struct{ Name, Version string }
	return err == nil && json.Unmarshal(text, &own) == nil && own.Name == p.name && own.Version == p.version
}
