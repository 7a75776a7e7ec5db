package main

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const maintainer = "stackglass developers <stackglass@users.noreply.github.com>"

// debianVersion returns the version in Debian's syntax: a pre-release is marked by a tilde, so that
// Debian sorts it before the release.
func (r *release) debianVersion() string { return strings.Replace(r.version, "-", "~", 1) }

// debian returns a binary package: an ar archive that contains the format version, an archive of
// the control files, and an archive of the installed files (see deb(5)).
func (r *release) debian(machine string, program []byte) ([]byte, error) {
	files, err := r.debianFiles(program)
	if err != nil {
		return nil, err
	}
	var size int
	var sums bytes.Buffer
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	for _, f := range files {
		size += (len(f.content) + 1023) / 1024
		sum := md5.Sum(f.content)
		sums.WriteString(hex.EncodeToString(sum[:]) + "  " + f.name + "\n")
	}
	control := "Package: stackglass\n" +
		"Version: " + r.debianVersion() + "\n" +
		"Section: devel\n" +
		"Priority: optional\n" +
		"Architecture: " + machine + "\n" +
		"Maintainer: " + maintainer + "\n" +
		fmt.Sprintf("Installed-Size: %d\n", size) +
		"Suggests: clang, qemu-user, gcc, valgrind\n" +
		"Homepage: https://github.com/stackglass/stackglass\n" +
		"Description: find out why a program waits for memory\n" +
		" stackglass analyses traces of memory references. One pass over a trace\n" +
		" counts the misses of every cache size, and shows which source lines and\n" +
		" data structures cause them, and which change would help. A page in the\n" +
		" browser shows the same results; no data leaves the machine.\n"
	about, err := r.tar("./", []file{{name: "control", content: []byte(control)}, {name: "md5sums", content: sums.Bytes()}})
	if err != nil {
		return nil, err
	}
	data, err := r.tar("./", files)
	if err != nil {
		return nil, err
	}
	out := bytes.NewBufferString("!<arch>\n")
	for _, f := range []file{{name: "debian-binary", content: []byte("2.0\n")}, {name: "control.tar.gz", content: about}, {name: "data.tar.gz", content: data}} {
		fmt.Fprintf(out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", f.name, r.time.Unix(), 0, 0, 0o100644, len(f.content))
		out.Write(f.content)
		if len(f.content)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes(), nil
}

// debianFiles returns the files that the Debian package installs.
func (r *release) debianFiles(program []byte) ([]file, error) {
	const about = "usr/share/doc/stackglass/"
	files := []file{{name: "usr/bin/stackglass", content: program, executable: true}}
	var failed error
	compressed := func(name string, content []byte) {
		packed, err := r.gzip(content)
		failed = errors.Join(failed, err)
		files = append(files, file{name: name + ".gz", content: packed})
	}
	copyright := "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n" +
		"Upstream-Name: stackglass\nSource: https://github.com/stackglass/stackglass\n" +
		"Comment: The program contains the libraries in third-party.txt.gz, with their licenses.\n\n" +
		"Files: *\n"
	for _, f := range r.shared {
		switch f.name {
		case "LICENSE":
			holder := regexpCopyright.FindString(string(f.content))
			copyright += "Copyright: " + strings.TrimPrefix(holder, "Copyright (c) ") + "\nLicense: Expat\n"
			_, text, _ := strings.Cut(string(f.content), holder)
			for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
				if strings.TrimSpace(line) == "" {
					line = ".\n"
				}
				copyright += " " + line
			}
		case "CHANGELOG.md":
			compressed(about+"CHANGELOG.md", f.content)
		case "third-party.txt":
			compressed(about+"third-party.txt", f.content)
		case "share/powershell/stackglass.ps1":
		case "share/man/man1/stackglass.1":
			compressed("usr/"+f.name, f.content)
		default:
			name := strings.Replace(f.name, "/site-functions/", "/vendor-completions/", 1) // the folder in which zsh expects the completions of packages
			files = append(files, file{name: "usr/" + name, content: f.content})
		}
	}
	files = append(files, file{name: about + "copyright", content: []byte(copyright)})
	compressed(about+"changelog", []byte("stackglass ("+r.debianVersion()+") unstable; urgency=medium\n\n"+
		"  * Release "+r.version+"; see CHANGELOG.md.gz.\n\n -- "+maintainer+"  "+r.time.Format("Mon, 02 Jan 2006 15:04:05 -0700")+"\n"))
	files = append(files, file{name: "usr/share/lintian/overrides/stackglass", content: []byte(
		"# Go programs contain their libraries.\nstackglass: statically-linked-binary [usr/bin/stackglass]\n")})
	return files, failed
}

func (r *release) gzip(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(content)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}
