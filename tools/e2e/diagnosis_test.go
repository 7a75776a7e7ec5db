package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// waitDiagnosis waits until the page shows the diagnosis of the current result.
func (p *tab) waitDiagnosis() {
	p.t.Helper()
	p.waitTrue("the diagnosis", `document.querySelector("#diagnosis")?.getAttribute("aria-busy") === "false" && !/^Searching/.test(document.querySelector("#verdict").textContent)`)
}

// TestDiagnosis checks that a result opens with the verdict, followed by the first finding with its
// source line and its fix.
func TestDiagnosis(t *testing.T) {
	needStage(t)
	p := openPage(t)
	for _, demo := range []struct{ name, kind, place, fix string }{
		{"false-sharing", "1. False sharing", "false-sharing.c:31", "alignas(64)"},
		{"array-list", "", "", ""},
		{"matmul-naive", "", "", ""},
	} {
		p.clickElement("#demo-" + demo.name)
		p.waitFinished()
		p.openView("diagnosis", "#diagnosis")
		p.waitDiagnosis()
		t.Log(p.textOf("#diagnosis"))
		if text := p.textOf("#advice-1"); !strings.Contains(text, demo.kind) || !strings.Contains(text, demo.place) || !strings.Contains(text, demo.fix) {
			t.Errorf("%s: first finding = %s, want %q at %s with the fix %q", demo.name, text, demo.kind, demo.place, demo.fix)
		}
		// The two bars show the bounds of the saving that the text names.
		wrong := eval[[]string](p, `Array.from(document.querySelectorAll(".advice .saves"), (e) => {
			const [most, least] = Array.from(e.querySelectorAll("meter"), (m) => m.value), named = e.textContent.match(/\d+(?=\s%)/g).map((n) => n / 100);
			return named[0] > 0 && Math.abs(named[0] - least) < 0.006 && Math.abs(named.at(-1) - most) < 0.006 ? "" : e.textContent + ": " + least + " to " + most;
		}).filter(Boolean)`)
		if len(wrong) > 0 {
			t.Errorf("%s: savings whose bars differ from the text: %q", demo.name, wrong)
		}
		p.viewport(390, 844)
		p.waitTrue("the first fix in a narrow window, visible without scrolling", `scrollY === 0 && document.querySelector("#advice-1 .fix").getBoundingClientRect().bottom <= innerHeight && document.documentElement.scrollWidth <= innerWidth`)
		p.viewport(1440, 900)
		p.takeScreenshots("diagnosis-" + demo.name)
		p.clickElement("#back")
		p.waitFor("#kept .open")
	}

	// The diagnosis uses the hierarchy and the processor that are selected in the header. The URL
	// contains both choices.
	p.clickElement("#kept .open")
	p.waitDiagnosis()
	for id, choice := range map[string]string{"processor": "neoverse-n1", "preset": "epyc-9654"} {
		before := p.textOf("#diagnosis")
		p.waitFor("#" + id)
		p.setValue(id, choice)
		p.waitTrue("a changed diagnosis", `document.querySelector("#diagnosis").textContent.replace(/\s+/g, " ").trim() !== `+quoteText(before))
		p.waitDiagnosis()
		if at := eval[string](p, `location.hash + document.getElementById(`+quoteText(id)+`).value`); !strings.Contains(at, id+"="+choice) || !strings.HasSuffix(at, choice) {
			t.Errorf("hash and choice in the header = %s, want %s in both", at, choice)
		}
	}
	p.takeScreenshots("diagnosis-machine")
}

// TestDiagnosisOfDroppedTrace records a trace with “stackglass cc”, drops the trace and its source
// file on the page together, and checks the diagnosis. After a single pass, the page must show the
// first finding with its source line, without any click. A key press expands the facts below the
// finding.
func TestDiagnosisOfDroppedTrace(t *testing.T) {
	needStage(t)
	p := openPage(t)
	kernel := filepath.Join(rootFolder, "core", "simulate", "testdata", "kernels", "multiply")
	p.dropFiles(absolute(t, kernel+".sgt"), absolute(t, kernel+".c"))
	p.waitFinished()
	p.waitFor("#advice-1 .source")
	p.takeScreenshots("diagnosis-dropped")
	const line = 23
	want := strings.TrimSpace(strings.Split(string(p.read(kernel+".c")), "\n")[line-1])
	if where, source := p.textOf("#advice-1 .where"), p.textOf("#advice-1 .source"); !strings.HasPrefix(where, "multiply.c:23 ") || source != want {
		t.Errorf("first finding = %q with the source line %q, want multiply.c:23 with %q", where, source, want)
	}

	if p.has("#findings") {
		t.Error("the facts are expanded before the user expands them")
	}
	p.clickElement("#diagnosis-notes summary")
	p.tabTo("the button", `document.activeElement.id === "facts-open"`)
	p.pressKeys(kb.Enter)
	p.waitTrue("the facts", `document.querySelector('#facts-open[aria-expanded="true"]') && document.querySelector("#findings") && document.querySelector("#chart-curve canvas")`)
	if !p.has("#diagnosis-notes[open]") {
		t.Error("the assumptions were collapsed when the page was rendered again")
	}
	p.reload()
	p.waitFor("#findings")
	p.tabTo("the button", `document.activeElement.id === "facts-open"`)
	p.pressKeys(" ")
	p.waitGone("#findings")
}

// columnsProgram is a C program that reads a row-major matrix column by column.
const columnsProgram = `#include <stdio.h>
double a[512][512];
int main(void)
{
	double sum = 0;
	for (int j = 0; j < 512; j++)
		for (int i = 0; i < 512; i++)
			sum += a[i][j];
	return sum != 0;
}
`

// TestRecordedSource checks that, if only the trace of a compiled program is dropped, the Diagnosis
// and Code views show the program's source lines, even after a reload.
func TestRecordedSource(t *testing.T) {
	needStage(t)
	p := openPage(t)
	trace := p.record("clang-19", "columns.c", columnsProgram)
	p.dropFiles(trace)
	p.waitFinished()
	p.waitFor("#advice-1 .source")
	if where, line := p.textOf("#advice-1 .where"), p.textOf("#advice-1 .source"); !strings.HasPrefix(where, "columns.c:8 ") || line != "sum += a[i][j];" {
		t.Errorf("first finding = %q with the source line %q, want columns.c:8 with sum += a[i][j];", where, line)
	}
	p.takeScreenshots("diagnosis-recorded")
	p.clickElement("#advice-1 .where")
	p.waitFor("#source-rows tr[aria-selected]")
	p.takeScreenshots("code-recorded")
	p.reload()
	p.waitFor("#source-rows tr[aria-selected]")
}

// record compiles a program with a compiler, runs it, and returns the name of the trace. The
// function skips the test if the compiler is not installed.
func (p *tab) record(compiler, name, text string) (trace string) {
	t := p.t
	t.Helper()
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("skipped: %s is not installed", compiler)
	}
	source, program := p.writeFile(name, []byte(text)), filepath.Join(t.TempDir(), "program")
	trace = program + ".sgt"
	for _, line := range [][]string{{filepath.Join(rootFolder, "bin", "stackglass"), "cc", "--", compiler, "-O1", source, "-o", program}, {program}} {
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Env = append(os.Environ(), "STACKGLASS_OUT="+trace, "STACKGLASS_QUIET=1")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, said)
		}
	}
	return trace
}

// gridProgram is a C++ program whose functions have mangled names.
const gridProgram = `#include <cstdio>
struct Grid {
	int cells[256][256];
	__attribute__((noinline)) long sum() const {
		long s = 0;
		for (int x = 0; x < 256; x++)
			for (int y = 0; y < 256; y++)
				s += cells[y][x];
		return s;
	}
};
static Grid grid;
int main() {
	for (auto &row : grid.cells)
		for (int &cell : row)
			cell = 1;
	std::printf("%ld\n", grid.sum());
}
`

// TestReadableNames checks that the views show the names of C++ functions as they are written in
// the source, also after a reload.
func TestReadableNames(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.dropFiles(p.record("clang++-19", "grid.cpp", gridProgram))
	p.waitFinished()
	p.waitFor("#advice-1 .where")
	readable := `document.querySelector("main").textContent.includes("Grid::sum") && !document.querySelector("main").textContent.includes("_ZN")`
	p.waitTrue("readable names in the Diagnosis view", readable)
	p.takeScreenshots("diagnosis-names")
	p.clickElement("#advice-1 .where")
	p.waitFor("#source-rows tr[aria-selected]")
	p.waitTrue("readable names in the Code view", readable)
	p.takeScreenshots("code-names")
	p.reload()
	p.waitFor("#source-rows tr[aria-selected]")
	p.waitTrue("readable names in the Code view after a reload", readable)
}
