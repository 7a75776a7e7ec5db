package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestCounters checks that the page shows a dropped profile that contains counters, and sorts its
// table. The table that the page saves must equal the command's table.
func TestCounters(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.dropFiles(p.countersProfile())
	p.waitFor("#digest")
	p.unfoldFacts()
	if text := p.textOf("#finding-operations"); !strings.Contains(text, "bytes for each flop") {
		t.Errorf("operations = %q, want the bytes for each flop", text)
	}
	p.openView("counters", "#counters")
	p.clickElement("#by-block")
	p.waitFor("#table-blocks tbody tr")
	p.clickElement(`#table-blocks [data-sort="executions"]`)
	p.waitTrue("sorted by executions", `document.querySelector('#table-blocks [data-sort="executions"]').closest("th").ariaSort === "descending"`)
	if first := p.textOf("#table-blocks tbody tr"); !strings.HasPrefix(first, "multiplyproductsmultiply.c") {
		t.Errorf("block with the most executions = %q, want block “products” of “multiply”", first)
	}
	name, path := p.awaitDownload(func() { p.clickElement("#blocks-csv") })
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if name != "multiply-blocks.csv" {
		t.Errorf("name of the saved table = %s, want multiply-blocks.csv", name)
	}
	want, err := exec.Command(sharedStage.program, "counters", p.countersProfile(), "--by", "block", "--sort", "executions", "--format", "csv").Output()
	if err != nil || string(content) != string(want) {
		t.Errorf("saved table =\n%s\nwant the table that the command prints (error %v)\n%s", content, err, want)
	}
	p.reload()
	p.waitFor("#table-blocks tbody tr")
	if first := p.textOf("#table-blocks tbody tr"); !strings.HasPrefix(first, "multiplyproductsmultiply.c") {
		t.Errorf("block with the most executions after a reload = %q, want block “products” of “multiply”", first)
	}
}

// TestCountersOnRequest checks that the checkbox for counters in the settings works, and that a
// trace without instructions can be analysed.
func TestCountersOnRequest(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.clickElement("#settings summary")
	p.clickElement(`#settings [name="touched"]`)
	p.dropFiles(lackeyTrace(t))
	p.waitFinished()
	p.openView("counters", "#counters")
	if text := p.textOf("#counters"); !strings.Contains(text, "bytes touched at least once") || !strings.Contains(text, "contains no blocks") {
		t.Errorf("counters = %q, want the bytes touched and a note that the trace contains no blocks", text)
	}
}
