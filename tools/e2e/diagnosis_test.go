package e2e

import (
	"os"
	"strings"
	"testing"
)

// The overview of a result begins with the diagnosis: the verdict, and the first finding with
// its place and what to change, without a click.
func TestDiagnosis(t *testing.T) {
	needStage(t)
	p := openPage(t)
	shots := os.Getenv("STACKGLASS_SHOTS") != ""
	for _, demo := range []struct{ name, kind, place string }{
		{"false-sharing", "false-sharing", "false-sharing.c:31"},
		{"array-list", "", ""},
		{"matmul-naive", "", ""},
	} {
		p.click("#demo-" + demo.name)
		p.finished()
		p.openView("1", "#diagnosis")
		p.wait("the diagnosis of "+demo.name, `document.querySelector("#diagnosis").getAttribute("aria-busy") === "false" && !/^Looking/.test(document.querySelector("#verdict").textContent)`)
		t.Log(p.text("#diagnosis"))
		if demo.kind != "" {
			if text := p.text("#advice-1"); !strings.Contains(text, demo.kind) || !strings.Contains(text, demo.place) || !strings.Contains(text, "alignas(64)") {
				t.Errorf("%s: %s", demo.name, text)
			}
		}
		if shots {
			p.shoot("diagnosis-" + demo.name)
		}
		if p.has("#diagnose-loops") && demo.name == "matmul-naive" {
			p.click("#diagnose-loops")
			p.finished()
			p.openView("1", "#diagnosis")
			p.wait("changes that were tried", `document.querySelector("#advice-1") && /interchange/.test(document.querySelector("#advice-1").textContent)`)
			if shots {
				p.shoot("diagnosis-loops")
			}
		}
		p.click("#back")
		p.waitFor("#kept .open")
	}
}
