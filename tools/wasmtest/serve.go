package main

import (
	_ "embed"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// policy is the content security policy of the site, except for what only its page needs.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'"

var (
	//go:embed page/page.html
	pageHTML []byte
	//go:embed page/page.js
	pageJS []byte
	//go:embed page/worker.js
	workerJS []byte
)

// program has the arguments and environment of the test binary.
type program struct {
	Args []string          `json:"args"`
	Env  map[string]string `json:"env"`
}

// server serves one test run and receives its output.
type server struct {
	mux            *http.ServeMux
	program        program
	data           string // folder below data/; "" for none
	stdout, stderr io.Writer
	exit           chan int
	setQuota       func(bytes *float64) error
}

func newServer(binary string, execJS []byte, root string, stdout, stderr io.Writer) *server {
	s := &server{mux: http.NewServeMux(), stdout: stdout, stderr: stderr, exit: make(chan int, 1)}
	s.serve("GET /{$}", "text/html; charset=utf-8", pageHTML)
	s.serve("GET /page.js", "text/javascript", pageJS)
	s.serve("GET /worker.js", "text/javascript", workerJS)
	s.serve("GET /wasm_exec.js", "text/javascript", execJS)
	s.mux.HandleFunc("GET /test.wasm", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/wasm")
		http.ServeFile(w, r, binary)
	})
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

// takeOutput copies the test's output. The page posts one part at a time, so parts arrive in order.
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
	default: // the first code counts
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

// dataFolder returns the folder of the traces outside the repository.
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
