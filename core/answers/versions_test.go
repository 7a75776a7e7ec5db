package answers

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sourcefile"
)

// TestMatchLines compares the lines of two versions of a file that was renamed. In the new version,
// one line was moved, one changed, one removed and one added. If the versions are equal, the table
// has no additional columns.
func TestMatchLines(t *testing.T) {
	files := func(name, text string) *sourcefile.Files {
		f, ok := sourcefile.Pack(name, []byte(text))
		if !ok {
			t.Fatal("the profile did not accept the source text")
		}
		return sourcefile.New([]trace.SourceFile{f})
	}
	const columns = "function file line L1_misses"
	a := files("a.c", "int f() {\nx = p[i];\nsum += m[j][i];\nold();\nreturn x;\n}\n")
	b := files("b.c", "// A comment.\nint f() {\nnew_and_other_words;\nx = p[i];\nsum += m[i][j];\nreturn x;\n}\n")
	for _, c := range []struct {
		b    *sourcefile.Files
		rows []string
		want string
	}{
		{b, []string{"f b.c 4 2", "f b.c 5 3", "f b.c 3 1", "f c.c 9 1"}, "function,file,line,a_line,text,in,a,b,difference,change " +
			"f,b.c,5,a.c:3,changed,both,9,3,-6,-0.6666666666666666 f,b.c,4,a.c:2,same,both,7,2,-5,-0.7142857142857143 " +
			"f,b.c,3,,added,B,0,1,1, f,b.c,,a.c:4,removed,A,1,0,-1,-1 f,c.c,9,,,both,1,1,0,0"},
		{a, []string{"f a.c 2 2", "f c.c 9 1"}, "function,file,line,in,a,b,difference,change f,a.c,3,A,9,0,-9,-1 f,a.c,2,both,7,2,-5,-0.7142857142857143 f,a.c,4,A,1,0,-1,-1 f,c.c,9,both,1,1,0,0"},
	} {
		tables := [2][]report.Table{{sites(columns, "f a.c 3 9", "f a.c 2 7", "f a.c 4 1", "f c.c 9 1")}, {sites(columns, c.rows...)}}
		MatchLines(tables, a, c.b)
		joined := Join(tables[0], tables[1])[0]
		joined.Rank("")
		table := joined.Brief("")
		if got := strings.ReplaceAll(strings.TrimSpace(string(table.CSV())), "\n", " "); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}
