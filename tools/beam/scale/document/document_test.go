package document

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stackglass/stackglass/tools/beam/scale/measure"
)

// TestFiles checks that the files in the repository are those that the program writes from
// constants.json.
func TestFiles(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "constants.json"))
	if err != nil {
		t.Fatal(err)
	}
	m := &measure.Measured{}
	if err := json.Unmarshal(content, m); err != nil {
		t.Fatal(err)
	}
	files, err := Files(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		have, err := os.ReadFile(filepath.Join("..", f.Name))
		if err != nil || !bytes.Equal(have, f.Content) {
			t.Errorf("%s differs from the program's output (%v); write it again with: go run ./scale/cmd", f.Name, err)
		}
	}
	svg := files[1].Content
	if len(svg) > 100_000 {
		t.Errorf("the plot has %d bytes", len(svg))
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestQuantities(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{digits(0), "0"}, {digits(7), "7"}, {digits(12.345), "12.3"}, {digits(0.00123), "0.0012"}, {digits(1234567.8), "1,234,568"}, {digits(999.96), "1,000"},
		{seconds(0.0123), "12.3 ms"}, {seconds(90), "90 s"}, {seconds(3000), "50 min"}, {seconds(36000), "10 h"}, {seconds(864000), "10 d"},
		{size(1500), "1.50 kB"}, {size(2e12), "2 TB"}, {power(1e9), "10⁹"}, {power(1 << 20), "2²⁰"}, {power(300), "300"}, {percent(0.051, true), "+5.1 %"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}
