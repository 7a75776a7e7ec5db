package command

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestMeasuredCode checks that samples with and without source lines are compared with the predicted
// shares of source lines and functions. The samples of another program are renamed for this test.
func TestMeasuredCode(t *testing.T) {
	const folder = "../../../../core/measured/testdata/"
	files := map[string]string{}
	for name, rename := range map[string]string{"mem.script": "walk main", "source.script": "fs.c:9 matmul-naive.c:MOST"} {
		text, err := os.ReadFile(folder + name)
		if err != nil {
			t.Fatal(err)
		}
		sites := stackglass("sites", "demo:matmul-naive", "--by", "line", "--top", "1", "--format", "csv")
		most := regexp.MustCompile(`matmul-naive\.c,(\d+),`).FindStringSubmatch(sites.stdout)
		if most == nil {
			t.Fatalf("no source line in %s", sites.stdout)
		}
		before, after, _ := strings.Cut(strings.Replace(rename, "MOST", most[1], 1), " ")
		files[name] = strings.ReplaceAll(string(text), before, after)
	}
	inFolder(t, files)
	for _, test := range []struct {
		file, by, title string
		note            bool
	}{
		{"mem.script", "line", "Sampled loads by function", true},
		{"mem.script", "function", "Sampled loads by function", false},
		{"source.script", "line", "Sampled loads by source line", false},
	} {
		got := stackglass("measured", "demo:matmul-naive", "--measurement", test.file, "--by", test.by)
		expectExit(t, got, exitOK, "the prediction covers loads and stores together")
		if note := strings.Contains(got.stderr, "grouped by function"); note != test.note {
			t.Errorf("%s by %s: got the warnings %q", test.file, test.by, got.stderr)
		}
		if !strings.Contains(got.stdout, test.title) || !strings.Contains(got.stdout, "predicted share of the L1 misses") {
			t.Errorf("%s by %s: there is no predicted share in\n%s", test.file, test.by, got.stdout)
		}
	}
}
