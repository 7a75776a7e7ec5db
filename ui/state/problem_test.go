package state

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/open"
)

// TestUnknownFormats checks that the page recognises the error about an unknown format. The page
// recognises the error by its text, so the text must be the same in both packages.
func TestUnknownFormats(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"pic.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR", "pic.png is a PNG image, not a trace."},
		{"all.7z", "7z\xbc\xaf and so on", "all.7z is a 7z archive; extract the trace from the archive."},
		{"letter.txt", "Dear Sir or Madam,\n\nno trace\n", "letter.txt is not in a supported format. Set --input-format to one of "},
	} {
		_, err := open.Open(c.name, strings.NewReader(c.content), open.Options{})
		if err == nil {
			t.Fatalf("%s was opened as a trace, want an error", c.name)
		}
		p := Problems(AddProblem("an earlier one", err.Error()))
		if len(p) != 2 || p[0].Text != "an earlier one" || !strings.HasPrefix(p[1].Text, c.want) {
			t.Errorf("%s: problems %+v, want the earlier problem and %q", c.name, p, c.want)
		}
		if details := p[len(p)-1].Details; !strings.Contains(details, "not lackey: ") || !strings.HasPrefix(details, "The file begins with ") {
			t.Errorf("%s: details %q", c.name, details)
		}
	}
	if p := Problems(AddProblem("same", "same")); len(p) != 1 || p[0].Text != "same" {
		t.Errorf("problems after the same problem was added twice = %+v, want one", p)
	}
	if p := Problems(""); p != nil {
		t.Errorf("Problems of an empty text = %+v, want none", p)
	}
}
