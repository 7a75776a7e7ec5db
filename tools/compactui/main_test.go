package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestCompact checks that short calls replace the code that the current version of vugugen
// generates for nodes, texts, listeners, properties and components.
func TestCompact(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "some") // name of the generated package
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	component := `<div class="a" id="b"><p>text</p><p><i>marked</i></p> <b :id='c.ID' @click='c.Do()'>bold</b> <i vg-content='c.Name'></i><input type="text" .checked='true'><vg-comp expr='c.Other'></vg-comp></div>`
	if err := os.WriteFile(filepath.Join(folder, "some.vugu"), []byte(component), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "tool", "vugugen", "-s", "-skip-go-mod", "-skip-main", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path := filepath.Join(folder, "0_components_gen.go")
	if err := rewrite(path); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`addRoot\(vgout, "div\\x00class\\x00a\\x00id\\x00b"\)`, `addElement\(vgparent, "p\\x00text"\)`,
		`setText\(vgn, vugu\.HTML\("\\x3Ci\\x3Emarked`,
		`addElement\(vgparent, "b\\x00bold"\)\s*setAttribute\(vgn, "id", c.ID\)\s*addListener\(vgn, "click", func`,
		`addElement\(vgparent, " i"\)\s*setText\(vgn, c.Name\)`, `addElement\(vgparent, "input\\x00type\\x00text"\)`,
		`addProperty\(vgn, "checked", true\)`, `addComponent\(vgin, vgout, vgparent, c.Other\)`,
	} {
		if !regexp.MustCompile(want).Match(source) {
			t.Errorf("no %s in\n%s", want, source)
		}
	}
	if old := regexp.MustCompile(`AppendChild|AddAttr|SetInner|DOMEventHandlerSpecList|vjson\.Marshal`).Find(source); old != nil {
		t.Errorf("%s was not replaced in\n%s", old, source)
	}
}
