package arch

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// mayImport lists the folders that each top-level folder may import. The import order is tools,
// wasm, ui → workers → core. No folder may import tools. The packages that serve the page may
// import only one package of site: the page's policy.
var mayImport = map[string][]string{
	"core":    {"core"},
	"workers": {"workers", "core", "site/policy"},
	"ui":      {"ui", "workers", "core"},
	"wasm":    {"wasm", "ui", "workers", "core"},
	"site":    {"site"},
	"tools":   {"tools", "site", "workers", "core", "ui"},
}

// withinCore lists the permitted imports for each folder in core. Some packages in these folders
// have a separate entry. All imports lead towards package trace. No other package in core may
// import oracle, because predictions must not use the code that checks them.
var withinCore = map[string][]string{
	"trace":       {"trace"},
	"codec":       {"codec"},
	"parallel":    {"parallel"},
	"report":      {"report", "codec"},
	"stack":       {"stack", "codec", "trace"},
	"profile":     {"profile", "codec", "trace"},
	"ir":          {"ir", "trace"},
	"interleave":  {"interleave", "trace"},
	"loops":       {"loops", "parallel", "trace"},
	"open":        {"open", "loops", "trace"},
	"pipeline":    {"pipeline", "trace"},
	"byfl":        {"byfl", "profile"},
	"measured":    {"measured", "report", "trace"},
	"hierarchy":   {"hierarchy", "profile", "trace"},
	"attribution": {"attribution", "hierarchy", "profile", "trace"},
	"simulate":    {"simulate", "hierarchy", "trace"},
	"blocks":      {"blocks", "codec", "hierarchy", "loops", "profile", "trace"},
	"analysis":    {"analysis", "blocks", "codec", "loops", "stack", "profile", "trace"},
	"papers":      {"papers", "analysis", "interleave", "loops", "trace"},
	"answers":     {"answers", "papers", "parallel", "blocks", "pipeline", "loops", "attribution", "hierarchy", "profile", "report", "trace"},
	"costmodel":   {"costmodel", "answers", "blocks", "ir", "pipeline", "attribution", "hierarchy", "profile", "report", "trace"},
	"ask":         {"ask", "analysis", "answers", "attribution", "blocks", "hierarchy", "loops", "profile", "report", "trace"},
	"diagnose":    {"diagnose", "costmodel", "answers", "attribution", "hierarchy", "loops", "parallel", "pipeline", "profile", "report", "trace"},
	"ask/program": {"ask", "diagnose", "measured", "costmodel", "ir", "pipeline", "analysis", "answers", "attribution", "blocks", "hierarchy", "loops", "profile", "report", "simulate", "trace"},
	"export":      {"export", "answers", "ask", "attribution", "hierarchy", "profile", "report", "trace"},
	"multicore":   {"multicore", "papers", "analysis", "answers", "blocks", "costmodel", "hierarchy", "interleave", "pipeline", "profile", "report", "simulate", "stack", "trace"},
	"oracle":      {"oracle", "multicore", "interleave", "loops", "simulate", "hierarchy", "trace"},
}

// otherPackages is the key for all packages in a folder that have no separate entry in the map
// importsInside.
const otherPackages = "*"

// importsInside lists, for each package in a folder, which other packages in that folder it may
// import. The name "." is the package of the folder itself.
var importsInside = map[string]map[string][]string{
	"core/analysis": {
		"contract":      {},
		"index":         {},
		otherPackages:   {"contract", "index"}, // small analyses, which have no separate entries
		"locality":      {"contract"},
		"branches":      {"contract", "index"},
		"sites":         {"branches", "contract", "index", "locality"},
		"sharing":       {"contract", "locality"},
		"communication": {"contract", "index", "sharing", "sites"},
		"prologue":      {"contract", "sites"},
		"structures":    {"contract", "index", "sites"},
		".":             {otherPackages, "branches", "communication", "contract", "index", "locality", "sharing", "sites"},
		"sample":        {"."},
		// package sample creates these analyses without importing them: see sample.NewLocality
		"sample/estimate": {".", "communication", "contract", "locality", "sample", "sharing", "sites"},
	},
	"core/loops": {
		".":       {},
		"outline": {"."},
		"misses":  {"."},
		"sgl":     {"."},
		"change":  {".", "misses"},
	},
	"core/multicore": {
		"tape":        {},
		".":           {"tape"},
		"blocksample": {},
		"predict":     {".", "blocksample"},
		"larger":      {"blocksample", "predict"},
	},
	"core/papers": {
		"sasmm": {},
		"sma":   {},
	},
	"core/oracle": {
		"kernels":  {},
		"threads":  {},
		"validate": {"threads"},
	},
	"ui": {
		"state": {},
		".":     {"state"},
	},
}

// isHelper reports whether only tests use a package, such as stack/stacktest. Such a package may
// import everything that tests may import.
func isHelper(dir string) bool {
	for part := range strings.SplitSeq(dir, "/") {
		if strings.HasSuffix(part, "test") && part != "test" {
			return true
		}
	}
	return false
}

func has(list []string, word string) bool {
	for _, w := range list {
		if w == word {
			return true
		}
	}
	return false
}

func TestTopLevelImports(t *testing.T) {
	for _, s := range goSources(t) {
		from, _, _ := strings.Cut(s.dir, "/")
		allowed, known := mayImport[from]
		if !known {
			t.Errorf("%s: Go code outside the folders %v", s.name, mayImport)
			continue
		}
		for imported, at := range s.imports {
			to, ours := strings.CutPrefix(imported, module)
			if !ours || s.isTest && from == "site" {
				continue // this package's test analyses the demos
			}
			if !slices.ContainsFunc(allowed, func(folder string) bool { return isBelow(to, folder) }) {
				t.Errorf("%s: %s may not import %s; want only imports of %v", at, from, to, allowed)
			}
		}
	}
}

func TestCoreImports(t *testing.T) {
	for _, s := range goSources(t) {
		from, inCore := strings.CutPrefix(s.dir, "core/")
		if !inCore || s.isTest || isHelper(s.dir) {
			continue
		}
		allowed, known := withinCore[from]
		if !known {
			from, _, _ = strings.Cut(from, "/")
			allowed, known = withinCore[from]
		}
		if !known {
			t.Errorf("core/%s is not in the import order; add it to the map withinCore", from)
			continue
		}
		for imported, at := range s.imports {
			to, ours := strings.CutPrefix(imported, module+"core/")
			if !ours {
				continue
			}
			if folder, _, _ := strings.Cut(to, "/"); !has(allowed, folder) {
				t.Errorf("%s: core/%s may not import core/%s; want only imports of %v", at, from, to, allowed)
			}
			if isHelper("core/" + to) {
				t.Errorf("%s: core/%s is for tests only", at, to)
			}
		}
	}
}

// TestTableListsAllAnalyses checks that the framework imports its analyses only in table.go, and
// that the analyses import only the framework's contract. Package sample may import both, because
// it implements the framework's type Sampling.
func TestTableListsAllAnalyses(t *testing.T) {
	const framework = "core/analysis"
	for _, s := range goSources(t) {
		if s.isTest || !isBelow(s.dir, framework) || isBelow(s.dir, framework+"/sample") || s.name == framework+"/table.go" {
			continue
		}
		for imported, at := range s.imports {
			to, ours := strings.CutPrefix(imported, module)
			_, child := strings.CutPrefix(to, framework+"/")
			switch {
			case !ours:
			case s.dir == framework && child && to != framework+"/contract" && to != framework+"/index":
				t.Errorf("%s: %s may not import %s: only table.go may import the analyses", at, framework, to)
			case s.dir != framework && to == framework:
				t.Errorf("%s: %s may import %s/contract, but not %s", at, s.dir, framework, framework)
			}
		}
	}
}

// TestImportOrderInFolders checks that the imports between packages in the same folder are
// permitted.
func TestImportOrderInFolders(t *testing.T) {
	for _, s := range goSources(t) {
		if s.isTest || isHelper(s.dir) {
			continue
		}
		for folder, order := range importsInside {
			if !isBelow(s.dir, folder) {
				continue
			}
			from := innerName(s.dir, folder)
			allowed, known := order[from]
			if !known {
				allowed, known = order[otherPackages]
			}
			if !known {
				t.Errorf("%s is not in the import order of %s; add it to the map importsInside", s.dir, folder)
				continue
			}
			for imported, at := range s.imports {
				to, ours := strings.CutPrefix(imported, module)
				if !ours || !isBelow(to, folder) {
					continue
				}
				name := innerName(to, folder)
				if order[name] == nil {
					name = otherPackages
				}
				if !has(allowed, name) {
					t.Errorf("%s: %s may not import %s; of %s, it may import only %v", at, s.dir, to, folder, allowed)
				}
			}
		}
	}
}

// innerName returns a package's path relative to the given folder, or "." for the folder itself.
func innerName(dir, folder string) string {
	if dir == folder {
		return "."
	}
	return strings.TrimPrefix(dir, folder+"/")
}

// TestImportOrdersHaveNoCycles checks that every folder in the import rules exists, and that the
// permitted imports do not form a cycle.
func TestImportOrdersHaveNoCycles(t *testing.T) {
	packages := map[string]bool{}
	for _, s := range goSources(t) {
		for dir := s.dir; dir != "."; dir = path.Dir(dir) {
			packages[dir] = true
		}
	}
	check := func(folder string, order map[string][]string) {
		const visiting, done = 1, 2
		state := map[string]int{}
		var visit func(from string)
		visit = func(from string) {
			state[from] = visiting
			for _, to := range order[from] {
				switch {
				case to == from: // both packages are in the same folder
				case state[to] == visiting:
					t.Errorf("%s: %s and %s may import each other", folder, from, to)
				case state[to] == 0:
					visit(to)
				}
			}
			state[from] = done
		}
		for from := range order {
			if from != otherPackages && !packages[path.Join(folder, from)] {
				t.Errorf("%s: there is no package %s", folder, from)
			}
			if state[from] == 0 {
				visit(from)
			}
		}
	}
	check(".", mayImport)
	check("core", withinCore)
	for folder, order := range importsInside {
		check(folder, order)
	}
}

// TestPageDoesNotImportOracle checks that the page does not contain the reference implementations,
// which are only for tests and the command.
func TestPageDoesNotImportOracle(t *testing.T) {
	for _, s := range goSources(t) {
		if s.isTest || isHelper(s.dir) || isBelow(s.dir, "core") || isBelow(s.dir, "tools") {
			continue
		}
		for imported, at := range s.imports {
			if to, ours := strings.CutPrefix(imported, module); ours && isBelow(to, "core/oracle") {
				t.Errorf("%s: %s may not import %s", at, s.dir, to)
			}
		}
	}
}

// TestTraceImports checks that package trace imports no other package in the repository, because
// all of them use it.
func TestTraceImports(t *testing.T) {
	for _, s := range goSources(t) {
		if s.dir != "core/trace" || s.isTest {
			continue
		}
		for imported, at := range s.imports {
			if strings.HasPrefix(imported, module) {
				t.Errorf("%s: core/trace imports %s, but may not import any package of the repository", at, imported)
			}
		}
	}
}

// TestCoreIsPlatformIndependent checks that the core does not depend on the platform. The core runs
// both natively and in the browser, so it must use readers, writers and bytes for all input and
// output.
func TestCoreIsPlatformIndependent(t *testing.T) {
	for _, s := range goSources(t) {
		if !isBelow(s.dir, "core") || s.isTest || isHelper(s.dir) {
			continue
		}
		for imported, at := range s.imports {
			top, _, _ := strings.Cut(imported, "/")
			if top == "os" || top == "net" || top == "syscall" || imported == "path/filepath" {
				t.Errorf("%s: core imports %s; take a reader, a writer or bytes instead", at, imported)
			}
		}
	}
}

// TestBrowserCodeImports checks that browser code does not import packages that would make a wasm
// program several times larger.
func TestBrowserCodeImports(t *testing.T) {
	heavy := map[string]string{
		"fmt":           "strconv and error types",
		"encoding/json": "strconv, or a binary form",
		"reflect":       "types",
		"regexp":        "strings",
		"html/template": "the page's components",
		"text/template": "strings",
	}
	for _, s := range goSources(t) {
		if s.isTest || isHelper(s.dir) || strings.HasSuffix(s.name, "_gen.go") {
			continue // vugugen generates this import
		}
		if isBelow(s.dir, "tools") || isBelow(s.dir, "site") {
			continue
		}
		for imported, at := range s.imports {
			if instead, found := heavy[imported]; found {
				t.Errorf("%s: %s runs in the browser and imports %s; use %s", at, s.dir, imported, instead)
			}
		}
	}
}
