package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// wideTrace touches some 800,000 lines in no order.
func (p *tab) wideTrace() string {
	var b []byte
	x := uint32(1)
	for range 1_500_000 {
		x = x*1664525 + 1013904223
		b = append(b, '0')
		b = strconv.AppendUint(append(b, ' '), uint64(x>>12)<<6, 16)
		b = append(b, '\n')
	}
	return p.write("wide.din", b)
}

// A trace of more lines than fit in the memory that was chosen goes on outside, says so,
// and gives the command's digest; at the end nothing but the result is kept.
func TestBeyondMemory(t *testing.T) {
	p := openPage(t)
	eval[any](p, `document.querySelector("#settings").open = true, document.querySelector("#memory").add(new Option("40MiB", "40MiB", true, true))`)
	p.shoot("settings")
	trace := p.wideTrace()
	p.drop(trace)
	p.waitFor("#run-outside")
	p.wait("a pause", `!document.querySelector("#run-pause").disabled`)
	p.click("#run-pause")
	p.wait("paused", `document.querySelector("#run-pause").textContent === "Go on"`)
	if memory, note := p.text("#run-memory"), p.text("#note"); !strings.Contains(memory, " of 40") || !strings.Contains(note, "wide.din has more distinct lines than fit in 40") {
		t.Errorf("memory %q, note %q", memory, note)
	}
	if !eval[bool](p, `document.querySelector("#run meter").value > 0`) {
		t.Error("the bar of the memory is empty")
	}
	p.shoot("run-outside")
	p.click("#run-pause")
	p.finished()
	profile := filepath.Join(t.TempDir(), "wide.sgp")
	ask(t, "analyze", trace, "-o", profile, "--memory", "400MiB", "--spill", t.TempDir())
	if got, want := p.digest(), infoOf(t, profile).Digest; got != want {
		t.Errorf("digest %s, the command's is %s", got, want)
	}
	p.click("#back")
	p.waitFor("#storage-finished")
	if title := eval[string](p, `document.querySelector("#kept .chip").title`); !strings.Contains(title, "did not fit in memory") {
		t.Errorf("the chip says %q", title)
	}
	p.shoot("storage")
	p.wait("what was outside to be gone", `indexedDB.databases().then((all) => all.every((d) => !d.name.includes(" shelf ")))`)
}

// What lies outside of memory for an analysis that nobody can go on with is deleted
// when the page is opened.
func TestOrphansAreSwept(t *testing.T) {
	p := openPage(t)
	eval[any](p, `new Promise((done) => { const r = indexedDB.open("stackglass shelf t0", 1);
		r.onupgradeneeded = () => r.result.createObjectStore("blocks"); r.onsuccess = () => { r.result.close(); done(null); }; })`)
	p.reload()
	p.wait("the orphan to be gone", `indexedDB.databases().then((all) => all.every((d) => !d.name.includes(" shelf ")))`)
}
