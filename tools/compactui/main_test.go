package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestCompact checks that calls replace the code that the current version of vugugen generates for
// nodes, listeners, properties and components.
func TestCompact(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "some") // the name of the generated package
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	component := `<div class="a" id="b"><p>text</p><input type="text" .checked='true' @click='c.Do()'><vg-comp expr='c.Other'></vg-comp></div>`
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
		`addElement\(vgparent, "p"\)`, `addElement\(vgparent, "input\\x00type\\x00text"\)`, `addListener\(vgn, "click", func`,
		`addProperty\(vgn, "checked", true\)`, `addComponent\(vgin, vgout, vgparent, vgcomp\)`,
	} {
		if !regexp.MustCompile(want).Match(source) {
			t.Errorf("no %s in\n%s", want, source)
		}
	}
	if old := regexp.MustCompile(`AppendChild|DOMEventHandlerSpecList|vjson\.Marshal`).Find(source); old != nil {
		t.Errorf("%s was not replaced in\n%s", old, source)
	}
}
