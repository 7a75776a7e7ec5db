package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
	"github.com/stackglass/stackglass/tools/internal/chromium"
	"github.com/stackglass/stackglass/tools/internal/wasmcode"
)

// exitBroken is the exit code for a test binary that did not run to its end.
const exitBroken = 2

// run runs the test binary args[0] with its arguments and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	if len(args) == 0 {
		return exitBroken, errors.New("the command line names no test binary; use: go test -exec=wasmtest, or wasmtest PKG.test [-test.v ...]")
	}
	execJS, err := wasmExec(ctx)
	if err != nil {
		return exitBroken, err
	}
	root, err := moduleRoot()
	if err != nil {
		return exitBroken, err
	}
	binary, err := os.ReadFile(args[0])
	if err == nil {
		binary, err = wasmcode.Straighten(binary)
	}
	if err == nil {
		binary, err = wasmcode.Shorten(binary)
	}
	if err != nil {
		return exitBroken, err
	}
	s := newServer(binary, execJS, root, stdout, stderr)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return exitBroken, err
	}
	origin := "http://" + listener.Addr().String() + "/"
	s.program = program{Args: testArgs(args[1:]), Env: testEnv(os.Environ(), origin, s.data != "")}
	web := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go web.Serve(listener)
	defer web.Close()
	return browse(ctx, s, origin)
}

// browse opens the page in a new browser, and waits for the exit code of the test binary.
func browse(ctx context.Context, s *server, origin string) (int, error) {
	ctx, end, err := chromium.Open(ctx)
	if err != nil {
		return exitBroken, err
	}
	defer end()
	crashed := make(chan struct{}, 1)
	err = chromedp.Listen(ctx, func(ev any) {
		if _, ok := ev.(*inspector.EventTargetCrashed); ok {
			select {
			case crashed <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		return exitBroken, err
	}
	s.setQuota = func(bytes *float64) error {
		_, err := chromedp.Call(ctx, storage.OverrideQuotaForOrigin,
			storage.OverrideQuotaForOriginParams{Origin: strings.TrimSuffix(origin, "/"), QuotaSize: bytes})
		return err
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(origin)); err != nil {
		return exitBroken, fmt.Errorf("cannot open the page: %w", err)
	}
	select {
	case code := <-s.exit:
		return code, nil
	case <-crashed:
		return exitBroken, errors.New("the browser's page crashed, most likely out of memory")
	case <-ctx.Done():
		return exitBroken, errors.New("stopped before the tests ended: " + context.Cause(ctx).Error())
	}
}

// wasmExec reads the script wasm_exec.js from the Go installation. This script starts Go programs.
func wasmExec(ctx context.Context) ([]byte, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot find wasm_exec.js with go env GOROOT: %w", err)
	}
	return os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "lib", "wasm", "wasm_exec.js"))
}

// moduleRoot returns the folder with go.mod at or above the working folder, or "" if there is none.
// Under go test, the working folder is the folder of the tested package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", nil
		}
		dir = parent
	}
}

// testArgs removes the flags with which go test requests files, because a browser has no file
// system.
func testArgs(args []string) []string {
	kept := []string{"test.wasm"}
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name != "test.testlogfile" && name != "test.gocoverdir" && name != "test.outputdir" {
			kept = append(kept, arg)
		}
	}
	return kept
}

// testEnv returns the environment variables that tests need. It omits all other variables, because
// js/wasm limits the total size of arguments and environment to 8 KiB.
func testEnv(environ []string, origin string, withData bool) map[string]string {
	env := map[string]string{"WASMTEST_URL": origin}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		for _, prefix := range []string{"GO", "STACKGLASS_", "RAPID_"} {
			if strings.HasPrefix(name, prefix) && len(value) < 512 {
				env[name] = value
			}
		}
	}
	delete(env, "STACKGLASS_DATA_URL")
	if withData {
		env["STACKGLASS_DATA_URL"] = origin + "data/"
	}
	return env
}

// policy is the site's content security policy, without the rules that only the page needs.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'"

var (
	//go:embed page/page.html
	pageHTML []byte
	//go:embed page/page.js
	pageJS []byte
	//go:embed page/worker.js
	workerJS []byte
)

// program contains the arguments and environment of the test binary.
type program struct {
	Args []string          `json:"args"`
	Env  map[string]string `json:"env"`
}

// server serves the files for one test run, and receives the output of the run.
type server struct {
	mux            *http.ServeMux
	program        program
	data           string // the folder of traces that is served as data/, or ""
	stdout, stderr io.Writer
	exit           chan int
	setQuota       func(bytes *float64) error
}

func newServer(binary []byte, execJS []byte, root string, stdout, stderr io.Writer) *server {
	s := &server{mux: http.NewServeMux(), stdout: stdout, stderr: stderr, exit: make(chan int, 1)}
	s.serve("GET /{$}", "text/html; charset=utf-8", pageHTML)
	s.serve("GET /page.js", "text/javascript", pageJS)
	s.serve("GET /worker.js", "text/javascript", workerJS)
	s.serve("GET /wasm_exec.js", "text/javascript", execJS)
	s.serve("GET /test.wasm", "application/wasm", binary)
	s.mux.HandleFunc("GET /program", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(s.program)
	})
	s.mux.HandleFunc("POST /output/{file}", s.takeOutput)
	s.mux.HandleFunc("POST /exit/{code}", s.takeExit)
	s.mux.HandleFunc("POST /quota", s.takeQuota)
	if root != "" {
		src := http.StripPrefix("/src", http.FileServer(http.Dir(root)))
		s.mux.HandleFunc("GET /src/", func(w http.ResponseWriter, r *http.Request) {
			if path.Base(r.URL.Path) == "wasm_exec.js" {
				w.Header().Set("Content-Type", "text/javascript")
				w.Write(execJS)
				return
			}
			src.ServeHTTP(w, r)
		})
	}
	if s.data = dataFolder(root); s.data != "" {
		s.mux.Handle("GET /data/", http.StripPrefix("/data", http.FileServer(http.Dir(s.data))))
	}
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r)
}

func (s *server) serve(pattern, contentType string, body []byte) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Write(body)
	})
}

// takeOutput copies output of the test binary to stdout or stderr. The page posts one chunk of
// output at a time, so the chunks arrive in order.
func (s *server) takeOutput(w http.ResponseWriter, r *http.Request) {
	to := s.stdout
	if r.PathValue("file") == "2" {
		to = s.stderr
	}
	if _, err := io.Copy(to, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (s *server) takeExit(w http.ResponseWriter, r *http.Request) {
	code, err := strconv.Atoi(r.PathValue("code"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case s.exit <- code:
	default: // ignore it, because the exit code has already been received
	}
}

func (s *server) takeQuota(w http.ResponseWriter, r *http.Request) {
	var limit *float64
	if q := r.URL.Query().Get("bytes"); q != "" {
		bytes, err := strconv.ParseFloat(q, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		limit = &bytes
	}
	if err := s.setQuota(limit); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// dataFolder returns the folder with the traces that are not in the repository.
func dataFolder(root string) string {
	dir := os.Getenv("STACKGLASS_DATA")
	if dir == "" && root != "" {
		dir = filepath.Join(root, "..", "shared", "data")
	}
	if dir == "" || strings.ContainsRune(dir, 0) {
		return ""
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}
