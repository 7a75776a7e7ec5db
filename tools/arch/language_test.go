package arch

import (
	"encoding/json"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// forbidden are patterns of English that readers had to read twice, with what to write instead. A match
// that continues with one of the words in but is not one.
var forbidden = []struct {
	pattern *regexp.Regexp
	but     []string
	instead string
}{
	{regexp.MustCompile(`\b(?i:of|by|with|from|behind|in|on|for|than|as|beyond|to|at|into|after|before|beside|besides|but|and|all|about|against|through|over|under|upon) what\b`),
		[]string{"-if", " to ", " if ", " should I", " the loop needs", " these would save"}, "name the thing instead of “what”"},
	{regexp.MustCompile(`^(?:What|Whose|Whatever) [^?]*\.$`), nil, "begin with the subject"},
	{regexp.MustCompile(`^Of `), []string{"course"}, "begin with the main clause"},
	{regexp.MustCompile(`^Where [^?]*, `), nil, "begin with If, or with the main clause"},
	{regexp.MustCompile(`\b(?:tells? of|told of|tells? apart|told apart|telling apart|told that|tells? nothing|tells? something)\b`), nil,
		"write records, contains, reports or distinguishes"},
	{regexp.MustCompile(`\b(?:go|goes|went|going|gone) on\b`), nil, "write continue or resume"},
	{regexp.MustCompile(`\b(?:hangs?|hung) on\b`), nil, "write depends on"},
	{regexp.MustCompile(`\b[Tt]hose of\b`), nil, "repeat the noun"},
	{regexp.MustCompile(`\b[Ss]o many\b`), []string{" threads that ", " cores that "}, "write N, or name the number"},
	{regexp.MustCompile(`\b(?:hold|holds|held|holding)\b[^.,;]{1,40}\bagainst\b`), nil, "write compare with"},
	{regexp.MustCompile(`\bone in a hundred\b|\bin 95 of 100\b`), nil, "write 1 %, or 95 % confidence interval"},
	{regexp.MustCompile(`\b(?:foretells?|foretold|mimicked)\b`), nil, "write predict or synthesise"},
}

// most is how many sentences of each kind may have a forbidden pattern: none, except in documents and
// comments that are older than this test. These numbers only become smaller.
var most = map[string]int{"documents": 90, "comments": 255}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]\)? +`)
	codeFence   = regexp.MustCompile("(?s)```.*?```")
	indentedRow = regexp.MustCompile(`(?m)^(?:    |\t).*$`)
	paragraph   = regexp.MustCompile(`\n\s*\n|\n(?:- |\d+\. |\||#)`)
	blanks      = regexp.MustCompile(`\s+`)
	element     = regexp.MustCompile(`>([^<>]{12,})<`)
	script      = regexp.MustCompile(`(?s)<script.*?</script>|<!--.*?-->`)
)

// TestLanguage: sentences that people read avoid the forbidden patterns.
func TestLanguage(t *testing.T) {
	found := map[string][]string{}
	check := func(kind, name, text string) {
		text = blanks.ReplaceAllString(strings.Trim(text, "|-#> \n"), " ")
		begin := 0
		for _, end := range append(sentenceEnd.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
			s := strings.TrimSpace(text[begin:end[1]])
			begin = end[1]
			if said := wrong(s); said != "" {
				found[kind] = append(found[kind], name+": "+said+": "+s)
			}
		}
	}
	walk(t, func(name string) {
		switch {
		case under(path.Dir(name), "tools/beam"), name == "CHANGELOG.md": // versions that were released
		case strings.HasSuffix(name, ".md"):
			kind := "documents"
			if under(path.Dir(name), "site/docs") || name == "README.md" {
				kind = "manual"
			}
			text := indentedRow.ReplaceAllString(codeFence.ReplaceAllString(read(t, name), ""), "")
			for _, part := range paragraph.Split(text, -1) {
				check(kind, name, part)
			}
		case path.Base(path.Dir(name)) == "help" && path.Ext(name) == ".txt":
			for _, part := range strings.Split(read(t, name), "\n\n") {
				check("help", name, part)
			}
		case path.Ext(name) == ".vugu" || path.Ext(name) == ".tmpl":
			for _, m := range element.FindAllStringSubmatch(script.ReplaceAllString(read(t, name), ""), -1) {
				check("page", name, m[1])
			}
		case path.Base(name) == "demos.json":
			var list []struct {
				Title, Question string
				Lesson          []string
			}
			if err := json.Unmarshal([]byte(read(t, name)), &list); err != nil {
				t.Fatal(err)
			}
			for _, d := range list {
				check("page", name, d.Title)
				check("page", name, d.Question)
				check("page", name, strings.Join(d.Lesson, " "))
			}
		}
	})
	for _, s := range sources(t) {
		if s.test || under(s.dir, "tools/beam") {
			continue
		}
		kind := "errors"
		if under(s.dir, "ui") {
			kind = "page"
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && strings.Count(text, " ") >= 3 {
					check(kind, s.name, text)
				}
			}
			return true
		})
		for _, text := range exported(s.syntax) {
			for _, part := range paragraph.Split(indentedRow.ReplaceAllString(text, ""), -1) {
				check("comments", s.name, part)
			}
		}
	}
	for kind, list := range found {
		if len(list) > most[kind] {
			t.Errorf("%d sentences of %s have forbidden patterns, at most %d may:\n%s", len(list), kind, most[kind], strings.Join(list, "\n"))
		}
	}
}

// wrong says what to write instead of a forbidden pattern in a sentence; "": there is none.
func wrong(sentence string) string {
	for _, f := range forbidden {
	matches:
		for _, at := range f.pattern.FindAllStringIndex(sentence, -1) {
			for _, but := range f.but {
				if strings.HasPrefix(sentence[at[1]:], but) {
					continue matches
				}
			}
			return f.instead
		}
	}
	return ""
}

// exported returns the comments of a package and of its exported declarations.
func exported(file *ast.File) (texts []string) {
	add := func(group *ast.CommentGroup) {
		if group != nil {
			texts = append(texts, group.Text())
		}
	}
	add(file.Doc)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				add(d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						add(d.Doc)
						add(spec.Doc)
					}
				case *ast.ValueSpec:
					if spec.Names[0].IsExported() {
						add(d.Doc)
						add(spec.Doc)
						add(spec.Comment)
					}
				}
			}
		}
	}
	return texts
}
