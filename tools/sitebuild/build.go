package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/tools/internal/wasmcode"
)

// build describes one run of sitebuild. All paths are relative to the root of the repository.
type build struct {
	out      string
	compress bool
	log      io.Writer
	hashed   map[string]string // for each file name without a hash, the name with the hash
}

func (b *build) run() error {
	if _, err := os.Stat("go.mod"); err != nil {
		return errors.New("there is no go.mod here; run this command from the repository's root")
	}
	if err := b.clearOutput(); err != nil {
		return err
	}
	for _, step := range []func() error{
		b.compileWasm, b.copyRuntime, b.extractHelper, b.copyCharts,
		b.copyStatic, b.writeIcons, b.joinParts, b.copyDemos, b.writeManual, b.writeIndex, b.writeHeaders, b.writePrecache, b.writeIgnored,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if !b.compress {
		return nil
	}
	return b.compressAll()
}

// clearOutput removes the files of an earlier run from the output folder, except for .gitkeep.
func (b *build) clearOutput() error {
	entries, err := os.ReadDir(b.out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == ".gitkeep" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(b.out, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file to the output folder. If hashable returns true for the file, its name
// contains a hash of its content.
func (b *build) write(name string, content []byte) error {
	if b.compress {
		var err error
		if content, err = minifyContent(name, content); err != nil {
			return err
		}
	}
	if hashable(name) {
		name = b.hashedName(name, content)
	}
	return writeFile(filepath.Join(b.out, filepath.FromSlash(name)), content)
}

// writeFile writes a file, and creates its folder if necessary.
func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// copy copies a file to the output folder.
func (b *build) copy(name, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return b.write(name, content)
}

// notInlined lists the packages that are compiled without inlining, which makes a first visit
// transfer far fewer bytes. The speed of these packages does not matter: their code runs once per
// click or message, or only for references that are sampled, made by several threads, or read from
// a rare format.
var notInlined = []string{
	"github.com/stackglass/stackglass/ui/...",
	"github.com/stackglass/stackglass/wasm/...",
	"github.com/stackglass/stackglass/workers/...",
	"github.com/stackglass/stackglass/core/report",
	"github.com/stackglass/stackglass/core/answers", "github.com/stackglass/stackglass/core/ask",
	"github.com/stackglass/stackglass/core/codec",
	"github.com/stackglass/stackglass/core/export",
	"github.com/stackglass/stackglass/core/profile", "github.com/stackglass/stackglass/core/attribution",
	"github.com/stackglass/stackglass/core/hierarchy/...", "github.com/stackglass/stackglass/core/analysis/sharing",
	"github.com/stackglass/stackglass/core/open",
	"github.com/stackglass/stackglass/core/trace/champsim", "github.com/stackglass/stackglass/core/trace/drmemtrace",
	"github.com/stackglass/stackglass/core/trace/execlog", "github.com/stackglass/stackglass/core/trace/gem5",
	"github.com/stackglass/stackglass/core/trace/pinatrace", "github.com/stackglass/stackglass/core/trace/ppt",
	"github.com/stackglass/stackglass/core/analysis/sample", "github.com/stackglass/stackglass/core/analysis/communication",
	"github.com/stackglass/stackglass/core/blocks", "github.com/stackglass/stackglass/core/loops/change", "github.com/stackglass/stackglass/core/loops/outline",
	"github.com/stackglass/stackglass/core/papers/sma",
	"github.com/stackglass/stackglass/core/analysis/footprint", "github.com/stackglass/stackglass/core/analysis/branches",
	"github.com/stackglass/stackglass/core/analysis/regions", "github.com/stackglass/stackglass/core/analysis/counters",
	"github.com/stackglass/stackglass/core/trace/lackey", "github.com/stackglass/stackglass/core/trace/lines",
	"github.com/stackglass/stackglass/core/analysis", "github.com/stackglass/stackglass/core/trace",
	"github.com/stackglass/stackglass/core/loops", "github.com/stackglass/stackglass/core/loops/sgl", "github.com/stackglass/stackglass/core/byfl",
	"github.com/stackglass/stackglass/core/analysis/nests", "github.com/stackglass/stackglass/core/trace/csv",
	"github.com/stackglass/stackglass/core/trace/din", "github.com/stackglass/stackglass/core/trace/sourcefile",
	"github.com/stackglass/stackglass/core/trace/records", "github.com/pierrec/lz4/v4", "github.com/pierrec/lz4/v4/internal/lz4stream",
	"github.com/vugu/vugu/...", "github.com/vugu/vjson", "github.com/hack-pad/...",
	"fmt", "reflect", "compress/gzip", "context", "crypto/...", "errors", "io", "log", "os", "sort", "strconv", "strings",
	"math", "sync", "syscall", "time", "unicode",
	"bufio", "html", "iter", "maps", "math/big", "math/rand", "hash/fnv", "encoding/hex", "unicode/utf16", "io/fs", "path",
	"bytes", "internal/strconv",
	"internal/bisect", "internal/fmtsort", "internal/godebug", "internal/poll", "internal/reflectlite",
	"syscall/js",
}

// buildTags contains the build tags of the programs. With the tag tinygo, which is named after a
// compiler, Vugu and its package vjson do not use encoding/json. No other code in the programs uses
// encoding/json. The package would account for one twentieth of the bytes of a first visit.
// TestReducedVugu checks the side effects of the tag.
const buildTags = "tinygo"

// programs lists the wasm files and their packages.
var programs = []struct{ file, folder string }{
	{"app.wasm", "./wasm/app"},
	{unpacker, "./wasm/unpack/program"},
}

// unpacker is the program that the page loads only for files with rare compression formats.
const unpacker = "unpack.wasm"

func (b *build) compileWasm() error {
	for _, p := range programs {
		if err := b.compile(p.file, p.folder); err != nil {
			return err
		}
	}
	return b.copy("worker.js", "wasm/worker/worker.js")
}

func (b *build) compile(file, folder string) error {
	temporary, err := os.MkdirTemp("", "sitebuild")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	out := filepath.Join(temporary, file)
	// The programs must not contain the commit, because a release tags another commit than the one
	// that the page was built from.
	args := []string{"build", "-trimpath", "-buildvcs=false", "-tags=" + buildTags, "-ldflags=-s -w", "-o", out}
	for _, packages := range notInlined {
		args = append(args, "-gcflags="+packages+"=-l")
	}
	cmd := exec.Command("go", append(args, folder)...)
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	cmd.Stderr = b.log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compiling %s: %w", folder, err)
	}
	program, err := os.ReadFile(out)
	var names bytes.Buffer
	if err == nil {
		program, err = changeData(program, dropLines, takeNames(&names), fold, func(memory []byte) error {
			return b.linkNames(memory, file, names.Bytes())
		})
	}
	if err != nil {
		return fmt.Errorf("changing the data of %s: %w", file, err)
	}
	if program, err = emptyUnused(program, names.Bytes()); err == nil {
		program, err = wasmcode.Straighten(program)
	}
	if err == nil {
		program, err = wasmcode.Shorten(program)
	}
	if err != nil {
		return fmt.Errorf("changing the code of %s: %w", file, err)
	}
	if err := writeSizes(filepath.Join("build", file+".sizes.txt"), program, names.Bytes()); err != nil {
		return err
	}
	if program, err = wasmcode.Fold(program); err != nil {
		return fmt.Errorf("changing the code of %s: %w", file, err)
	}
	return b.write(file, program)
}

// copyRuntime writes wasm_exec.js with the code that unfolds programs.
func (b *build) copyRuntime() error {
	root, err := commandOutput("go", "env", "GOROOT")
	if err != nil {
		return err
	}
	script, err := os.ReadFile(filepath.Join(root, "lib", "wasm", "wasm_exec.js"))
	unfold, err2 := os.ReadFile("wasm/worker/unfold.js")
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	return b.write("wasm_exec.js", append(script, unfold...))
}

func (b *build) copyCharts() error {
	const chart, layout = "site/node_modules/uplot/dist/", "site/node_modules/@dagrejs/dagre/dist/dagre.min.js"
	_, err := os.Stat(chart + "uPlot.iife.min.js")
	if _, also := os.Stat(layout); err != nil || also != nil {
		cmd := exec.Command("go", "run", "./tools/npmfetch", "uplot", "@dagrejs/dagre")
		cmd.Stderr = b.log
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("fetching the npm packages: %w", err)
		}
	}
	library, err := os.ReadFile(chart + "uPlot.iife.min.js")
	if err == nil {
		library, err = inEnglish(library)
	}
	if err == nil {
		err = b.write("uplot.js", library)
	}
	if err != nil {
		return err
	}
	if err := b.copy("uplot.css", chart+"uPlot.min.css"); err != nil {
		return err
	}
	graph, err := graphScript(layout)
	if err != nil {
		return err
	}
	return b.write("graph.js", graph)
}

// userLanguage matches the code of uPlot that asks the browser for the user's language.
var userLanguage = regexp.MustCompile(`new Intl\.NumberFormat\([^()]*\)`)

// inEnglish makes uPlot format numbers in English, like the rest of the page. On a system without a
// language (LANG=C), WebKit reports an invalid language, which would make uPlot fail with an error.
func inEnglish(uplot []byte) ([]byte, error) {
	if n := len(userLanguage.FindAll(uplot, -1)); n != 1 {
		return nil, fmt.Errorf("the script of uPlot asks for the user's language %d times, want once; adapt userLanguage", n)
	}
	return userLanguage.ReplaceAll(uplot, []byte(`new Intl.NumberFormat("en-US")`)), nil
}

// graphScript returns the graph layout library, followed by the script that draws graphs. It
// removes the URL of the library's source map, because the map is not served.
func graphScript(layout string) ([]byte, error) {
	library, errLibrary := os.ReadFile(layout)
	license, errLicense := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(layout)), "LICENSE"))
	ours, err := os.ReadFile("site/graph.js")
	if err == nil {
		ours, err = minifyContent("graph.js", ours)
	}
	if err := errors.Join(errLibrary, errLicense, err); err != nil {
		return nil, err
	}
	library, _, _ = bytes.Cut(library, []byte("\n/*! For license information"))
	return slices.Concat([]byte("/*! dagre\n"), license, []byte("*/\n"), library, []byte("\n"), ours), nil
}

func (b *build) copyStatic() error { return b.copyTree("", "site/static") }

// joinedFiles lists those files of the page that are concatenated from other files. The field
// "parts" lists these other files in order. Concatenation saves a round trip and headers for each
// file, and improves compression. Only the beginning of a script can enable strict mode, so each
// joined script begins with a script of this repository.
var joinedFiles = []struct {
	name, between string
	parts         []string
}{
	{"page.css", "\n", []string{"uplot.css", "app.css"}},
	{"page.js", ";\n", []string{"boot.js", "charts.js", "tables.js", "uplot.js", "vugu.js", "start.js"}},
}

// joinParts writes the concatenated files, and removes the files from which they were concatenated.
func (b *build) joinParts() error {
	for _, file := range joinedFiles {
		var content []byte
		for _, part := range file.parts {
			from := filepath.Join(b.out, filepath.FromSlash(b.hashed[part]))
			read, err := os.ReadFile(from)
			if err == nil {
				err = os.Remove(from)
			}
			if err != nil {
				return fmt.Errorf("joining %s: %w", file.name, err)
			}
			delete(b.hashed, part)
			content = append(append(content, read...), file.between...)
		}
		if err := writeFile(filepath.Join(b.out, filepath.FromSlash(b.hashedName(file.name, content))), content); err != nil {
			return err
		}
	}
	return nil
}

// copyDemos copies the demos' traces and sources if they exist.
func (b *build) copyDemos() error {
	if _, err := os.Stat("site/demos"); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return b.copyTree("demos", "site/demos")
}

// copyTree copies the files of a folder, except hidden files and Go files.
func (b *build) copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if name := entry.Name(); strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return b.copy(filepath.ToSlash(filepath.Join(to, rel)), path)
	})
}

// commandOutput runs a command and returns its output without surrounding white space.
func commandOutput(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
