package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

var wranglerReady = regexp.MustCompile(`Ready on (http://([0-9.:]+))`)

// startCloudflare runs the worker and the asset server until the test ends. The test uses
// Cloudflare's own runtime and tool, with the same configuration as a deployment.
func startCloudflare(t *testing.T) *server {
	t.Helper()
	tool := absolute(t, filepath.Join(rootFolder, "site", "node_modules", "wrangler", "bin", "wrangler.js"))
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(tool)
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%v; make e2e fetches wrangler; Node must be installed", err)
		}
		t.Skipf("skipped: the worker in Cloudflare's runtime: %v (install Node 20.3 or later; make e2e fetches wrangler)", err)
	}
	for _, made := range []string{"build/edge/app.wasm", "site/dist/index.html"} {
		if _, err := os.Stat(filepath.Join(rootFolder, made)); err != nil {
			t.Fatalf("%v; run make edge", err)
		}
	}
	cmd := exec.Command(node, tool, "dev", "--ip", "127.0.0.1", "--port", "0", "--inspector-port", "0", "--var", "VERSION:"+edgeVersion,
		"--persist-to", t.TempDir(), "--show-interactive-dev-session=false")
	cmd.Dir = filepath.Join(rootFolder, "workers", "edge")
	// Wrangler must not contact a server to look for updates or to find its location.
	cmd.Env = append(os.Environ(), "CI=1", "NO_COLOR=1", "WRANGLER_SEND_METRICS=false", "WRANGLER_HIDE_BANNER=true", "CLOUDFLARE_CF_FETCH_ENABLED=false",
		"WRANGLER_LOG_PATH="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // also kill the child processes that Wrangler starts
	// The output goes to a file, because a pipe would have no reader if this test were killed.
	said, err := os.Create(filepath.Join(t.TempDir(), "wrangler.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	for late := time.After(waitLimit); ; {
		log, err := os.ReadFile(said.Name())
		if err != nil {
			t.Fatal(err)
		}
		if found := wranglerReady.FindSubmatch(log); found != nil {
			t.Logf("wrangler dev was ready after %.1f s", time.Since(start).Seconds())
			return &server{origin: string(found[1]), address: string(found[2])}
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("wrangler dev ended before it served the page (%v):\n%s", err, log)
		case <-late:
			t.Fatalf("wrangler dev does not serve the page:\n%s", log)
		case <-time.After(askEvery):
		}
	}
}

// edgeVersion is the version number of the worker in this test.
const edgeVersion = "v1.2.3-e2e"
