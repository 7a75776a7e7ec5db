// Release builds the release files in build/release:
//
//   - an archive of the command for each operating system and architecture, with the page inside
//     the command, the manual page, shell completions and the licences of all dependencies;
//   - a Debian package for each architecture;
//   - a copy of the page for offline use (the archive of `make zip`);
//   - a software bill of materials in CycloneDX's format;
//   - the file SHA256SUMS, which contains the checksums of all other files.
//
// The same commit and version of Go always result in the same bytes: all timestamps are the time of
// the commit, lists are sorted, and the binaries contain no paths of the machine that builds them.
// Release publishes nothing.
//
// Usage, from the repository's root, after `make build zip` (`make release` does both, with the
// version of Go that go.mod names):
//
//	go run ./tools/release -version v1.2.3 [-targets linux/amd64,windows/arm64]
package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stackglass/stackglass/site"
)

const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// versionPattern matches a version such as v1.2.3 or v1.2.3-rc.1.
var versionPattern = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9a-z.]+)?$`)

// release describes the release to build.
type release struct {
	version string    // the version, without the prefix v
	out     string    // the folder for the release files
	page    string    // the path of the page's archive
	time    time.Time // the time of the commit
	log     io.Writer

	shared       []file // the files that every archive contains in addition to the program
	dependencies *dependencies
}

// file is a file in an archive or a package.
type file struct {
	name       string // slash-separated path in the archive
	content    []byte
	executable bool // whether the file is executable
}

func main() {
	version := flag.String("version", "", "version, such as v1.2.3")
	out := flag.String("o", "build/release", "folder for the files; its previous content is removed")
	page := flag.String("page", "build/stackglass.zip", "archive of the page, created by `make zip`")
	targets := flag.String("targets", allTargets, "operating systems and architectures")
	flag.Parse()
	err := run(*version, *out, *page, strings.Split(*targets, ","), os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(version, out, page string, targets []string, log io.Writer) error {
	if !versionPattern.MatchString(version) {
		return fmt.Errorf("the version is %q, want a version such as v1.2.3; run make release VERSION=v1.2.3", version)
	}
	if err := checkPage(page, version); err != nil {
		return err
	}
	when, err := commitTime()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	r := &release{version: version[1:], out: out, page: page, time: when, log: log}
	return r.makeAll(targets)
}

// checkPage checks that the archive of the page names the version of the release, and contains the
// same page as the command.
func checkPage(archive, version string) error {
	dist, err := site.Dist()
	if err != nil {
		return err
	}
	page, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("%s: %w; run make release VERSION=%s", archive, err, version)
	}
	defer page.Close()
	readme, err := fs.ReadFile(page, "stackglass/README.txt")
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	if want := "This is version " + version + "."; !slices.Contains(strings.Split(string(readme), "\n"), want) {
		return fmt.Errorf("%s is not the page of %s: its README.txt lacks the line %q; run make release VERSION=%s", archive, version, want, version)
	}
	return fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(name, ".") || path.Ext(name) == ".br" || path.Ext(name) == ".gz" {
			return err
		}
		want, err := fs.ReadFile(dist, name)
		if err != nil {
			return err
		}
		if got, err := fs.ReadFile(page, "stackglass/"+name); err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("%s is not the page that the command contains: %s differs from site/dist; run make release VERSION=%s", archive, name, version)
		}
		return nil
	})
}

// commitTime returns the time in the environment variable SOURCE_DATE_EPOCH or, if the variable is
// not set, the time of the last commit.
func commitTime() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		printed, err := output("git", "log", "-1", "--format=%ct")
		if err != nil {
			return time.Time{}, err
		}
		text = strings.TrimSpace(string(printed))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, want seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func (r *release) makeAll(targets []string) error {
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if r.dependencies, err = readDependencies(); err != nil {
		return err
	}
	here := filepath.Join(work, "here")
	if err := r.compile("", "", here); err != nil {
		return err
	}
	if err := r.addSharedFiles(here); err != nil {
		return err
	}
	for _, target := range targets {
		if err := r.makeTarget(target, filepath.Join(work, "program")); err != nil {
			return err
		}
	}
	bom, err := r.bom()
	if err == nil {
		err = r.write("stackglass-"+r.version+".cdx.json", bom)
	}
	if err != nil {
		return err
	}
	page, err := os.ReadFile(r.page)
	if err == nil {
		err = r.write("stackglass-"+r.version+"-page.zip", page)
	}
	if err != nil {
		return err
	}
	return r.writeChecksums()
}

// compile builds the command for an operating system and architecture, or for this machine if the
// parameter "system" is "".
func (r *release) compile(system, machine, to string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version=v"+r.version, "-o", to, "./tools/stackglass")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0")
	if system != "" {
		cmd.Env = append(cmd.Env, "GOOS="+system, "GOARCH="+machine)
	}
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build for %s/%s: %w\n%s", system, machine, err, said)
	}
	return nil
}

// addSharedFiles prepares the files that every archive contains. It runs the command to print the
// manual page and the shell completions.
func (r *release) addSharedFiles(command string) error {
	for _, made := range []struct {
		name      string
		arguments []string
	}{
		{"share/man/man1/stackglass.1", []string{"man"}},
		{"share/bash-completion/completions/stackglass", []string{"completion", "bash"}},
		{"share/zsh/site-functions/_stackglass", []string{"completion", "zsh"}},
		{"share/fish/vendor_completions.d/stackglass.fish", []string{"completion", "fish"}},
		{"share/powershell/stackglass.ps1", []string{"completion", "powershell"}},
	} {
		text, err := output(command, made.arguments...)
		if err != nil {
			return err
		}
		r.shared = append(r.shared, file{name: made.name, content: text})
	}
	for _, name := range []string{"LICENSE", "CHANGELOG.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		r.shared = append(r.shared, file{name: name, content: text})
	}
	licences, err := r.dependencies.licences()
	r.shared = append(r.shared, file{name: "third-party.txt", content: licences})
	return err
}

// makeTarget creates the archive for one target and, for Linux, the Debian package.
func (r *release) makeTarget(target, program string) error {
	system, machine, _ := strings.Cut(target, "/")
	fmt.Fprintln(r.log, "compiling for", target)
	if err := r.compile(system, machine, program); err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if err := r.dependencies.addLinkedModules(content); err != nil {
		return err
	}
	folder := "stackglass-" + r.version + "-" + system + "-" + machine
	name := "stackglass"
	if system == "windows" {
		name += ".exe"
	}
	files := append(slices.Clone(r.shared), file{name: name, content: content, executable: true})
	if system == "windows" {
		archive, err := r.zip(folder+"/", files)
		if err != nil {
			return err
		}
		return r.write(folder+".zip", archive)
	}
	archive, err := r.tar(folder+"/", files)
	if err == nil {
		err = r.write(folder+".tar.gz", archive)
	}
	if err != nil || system != "linux" {
		return err
	}
	made, err := r.debian(machine, content)
	if err != nil {
		return err
	}
	return r.write("stackglass_"+r.debianVersion()+"_"+machine+".deb", made)
}

func (r *release) write(name string, content []byte) error {
	fmt.Fprintf(r.log, "%s: %d bytes\n", name, len(content))
	return os.WriteFile(filepath.Join(r.out, name), content, 0o666)
}

// writeChecksums writes the checksums of all release files in the format of sha256sum.
func (r *release) writeChecksums() error {
	entries, err := os.ReadDir(r.out) // ReadDir sorts the entries
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		list.WriteString(hex.EncodeToString(sum[:]) + "  " + e.Name() + "\n")
	}
	return r.write("SHA256SUMS", list.Bytes())
}

// output returns the standard output of a program.
func output(name string, arguments ...string) ([]byte, error) {
	cmd := exec.Command(name, arguments...)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, messages.Bytes())
	}
	return out.Bytes(), nil
}
