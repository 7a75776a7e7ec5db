package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestCounters drops a profile with counters, sorts the table, and compares the saved table with
// the command's table.
func TestCounters(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.drop(p.multiplied())
	p.waitFor("#digest")
	p.unfoldFacts()
	if text := p.text("#finding-operations"); !strings.Contains(text, "bytes for each flop") {
		t.Errorf("the overview shows %q", text)
	}
	p.openView("counters", "#counters")
	p.click("#by-block")
	p.waitFor("#table-blocks tbody tr")
	p.click(`#table-blocks [data-sort="executions"]`)
	p.wait("sorted by executions", `document.querySelector('#table-blocks [data-sort="executions"]').closest("th").ariaSort === "descending"`)
	if first := p.text("#table-blocks tbody tr"); !strings.HasPrefix(first, "multiplyproductsmultiply.c") {
		t.Errorf("the block that is executed most often: %q", first)
	}
	name, path := p.download(func() { p.click("#blocks-csv") })
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if name != "multiply-blocks.csv" {
		t.Errorf("saved as %s", name)
	}
	want, err := exec.Command(shared.program, "counters", p.multiplied(), "--by", "block", "--sort", "executions", "--format", "csv").Output()
	if err != nil || string(content) != string(want) {
		t.Errorf("the page saved\n%s\nthe command printed (%v)\n%s", content, err, want)
	}
	p.reload()
	p.waitFor("#table-blocks tbody tr")
	if first := p.text("#table-blocks tbody tr"); !strings.HasPrefix(first, "multiplyproductsmultiply.c") {
		t.Errorf("after a reload: %q", first)
	}
}

// TestCountersOnRequest analyses a trace without instructions, with the checkbox for counters
// ticked.
func TestCountersOnRequest(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.click("#settings summary")
	p.click(`#settings [name="touched"]`)
	p.drop(lackeyTrace(t))
	p.finished()
	p.openView("counters", "#counters")
	if text := p.text("#counters"); !strings.Contains(text, "bytes touched at least once") || !strings.Contains(text, "contains no blocks") {
		t.Errorf("the counters are %q", text)
	}
}
