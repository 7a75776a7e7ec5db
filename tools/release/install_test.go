package main

import (
	"bufio"
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stackglass/stackglass/site"
)

// TestInstalledCommand tags a copy of this repository as the workflow "release" does, installs the
// command from the tag with the line that the manual contains, and checks that the command prints
// the version and serves the page.
func TestInstalledCommand(t *testing.T) {
	inRepository(t)
	dist, err := site.Dist()
	if err != nil {
		t.Skip("skipped:", err)
	}
	const address, version = "github.com/stackglass/stackglass", "v0.1.0"
	command, modules := installTag(t, tagCopy(t, version), address, address+"/tools/stackglass@latest")

	archive, err := os.Stat(filepath.Join(modules, "cache", "download", filepath.FromSlash(address), "@v", version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	const most = 100 << 20 // Go accepts 500 MiB, but every user downloads the archive
	t.Logf("the archive of the module has %d bytes", archive.Size())
	if archive.Size() > most {
		t.Errorf("the archive of the module has %d bytes, want at most %d", archive.Size(), most)
	}
	if got, err := output(command, "--version"); string(got) != "stackglass "+version+"\n" {
		t.Errorf("version: %q, %v", got, err)
	}
	serveInstalled(t, command, dist)
}

// tagCopy returns the path of a new repository that contains a copy of the files of this one, and a
// tag with the name of the version. The commit with the tag contains the page. Because the test
// reads every file, `go test` runs the test again if a file has changed.
func tagCopy(t *testing.T, version string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "repository")
	list, err := output("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if _, err := os.Lstat(name); err != nil {
			continue // the file was deleted, but the deletion is not committed
		}
		copyFile(t, name, filepath.Join(to, name))
	}
	git := func(program string, arguments ...string) {
		t.Helper()
		cmd := exec.Command(program, arguments...)
		cmd.Dir = to
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@localhost")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", program, arguments, err, said)
		}
	}
	git("git", "init", "--quiet")
	git("git", "add", "--force", ".")
	git("git", "commit", "--quiet", "--message", "all files")
	if err := os.RemoveAll(filepath.Join(to, "site", "dist")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(to, "site", "dist"), os.DirFS(filepath.Join("site", "dist"))); err != nil {
		t.Fatal(err)
	}
	git(filepath.Join(to, "tools", "release", "tag.sh"), version)
	return to
}

// copyFile copies a file with its permissions.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o777)
	}
	if err == nil {
		err = os.WriteFile(to, read(t, from), info.Mode().Perm())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// installTag installs a command from a repository, and returns the paths of the command and of the
// module cache. Go reads the module from the repository, with git, and the dependencies from the
// machine's own module cache. installTag therefore does not need a network.
func installTag(t *testing.T, repository, address, command string) (program, modules string) {
	t.Helper()
	cached, err := output("go", "env", "GOMODCACHE")
	if err != nil {
		t.Fatal(err)
	}
	// The machine's own module cache must not contain the module of the test.
	bin, modules := t.TempDir(), t.TempDir()
	install := exec.Command("go", "install", command)
	install.Dir = t.TempDir() // outside of the repository, as users do
	install.Env = append(os.Environ(), "GOBIN="+bin, "GOMODCACHE="+modules, "GOFLAGS=-modcacherw -trimpath", "CGO_ENABLED=0", "GOSUMDB=off",
		"GOPROXY=file://"+filepath.ToSlash(filepath.Join(strings.TrimSpace(string(cached)), "cache", "download"))+",direct",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+repository+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+address)
	start := time.Now()
	if said, err := install.CombinedOutput(); err != nil {
		t.Fatalf("go install %s: %v\n%s", command, err, said)
	}
	used := install.ProcessState.UserTime() + install.ProcessState.SystemTime()
	t.Logf("go install took %.0f s, and %.0f s on processors", time.Since(start).Seconds(), used.Seconds())
	return filepath.Join(bin, "stackglass"), modules
}

// serveInstalled starts the server on a free port, and compares files of the page with site/dist.
func serveInstalled(t *testing.T, command string, dist fs.FS) {
	t.Helper()
	server := exec.Command(command, "serve", "--no-browser", "--http", "127.0.0.1:0")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	server.Stderr = os.Stderr
	server.Dir = t.TempDir()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 3 {
		t.Fatalf("serve printed %q, %v", line, err)
	}
	programs, err := fs.Glob(dist, "assets/*.wasm")
	if err != nil || len(programs) != 2 {
		t.Fatalf("the page has the programs %v, want two (%v)", programs, err)
	}
	for _, name := range append(programs, "index.html", "demos/ring.sgt") {
		want, err := fs.ReadFile(dist, name)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.Get(words[2] + strings.TrimSuffix(name, "index.html"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != http.StatusOK || !bytes.Equal(got, want) {
			t.Errorf("GET %s: %s, %d bytes, %v; want the %d bytes of the file", name, response.Status, len(got), err, len(want))
		}
	}
}
