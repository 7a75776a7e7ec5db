package arch

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forbiddenPatterns contains patterns of English that are hard to read, with the advice that the
// test prints. A match is allowed if one of the strings in the field "but" follows it.
var forbiddenPatterns = []struct {
	pattern *regexp.Regexp
	but     []string
	instead string
}{
	{regexp.MustCompile(`\b(?i:of|by|with|from|behind|in|on|for|than|as|beyond|to|at|into|after|before|beside|besides|but|and|all|about|against|through|over|under|upon) what\b`),
		[]string{"-if", " to ", " if ", " should I", " the loop needs", " these would save"}, "name the thing instead of “what”"},
	{regexp.MustCompile(`^(?:What|Whose|Whatever) [^?]*\.$`), nil, "begin with the subject"},
	{regexp.MustCompile(`^Of `), []string{"course", "builds", "estimates", "returns"}, "begin with the main clause"},
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

// uncheckedKinds contains the kinds of text that TestDrawSentences reads, but TestLanguage does not.
var uncheckedKinds = map[string]bool{"other comments": true, "test comments": true, "test messages": true, "test names": true}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]\)? +`)
	// The period after an initial, as in "D. Hill", or after an abbreviation does not end a
	// sentence.
	abbreviation = regexp.MustCompile(`(?:\b[A-Z]|\bal|\bEq|\beq|\be\.g|\bvs|^\d+)$`)
	numbersOnly  = regexp.MustCompile(`^[^|]*(?:\|[^|]*[0-9–][^|]*)+$`) // matches a table row that contains numbers
	codeFence    = regexp.MustCompile("(?s)```.*?```")
	listItem     = regexp.MustCompile(`^\s*(?:- |\d+\. )`)
	ownLine      = regexp.MustCompile(`^(?:\||#)`)
	blanks       = regexp.MustCompile(`\s+`)
	common       = regexp.MustCompile(`(?i)\b(?:the|an?|of|in|is|are|was|were|to|for|not|no|it|its|with|by|on|has|have|as|from|per|want|only|cannot|each|this|that|at|than)\b`)
	notProse     = regexp.MustCompile(`</|<[a-z]+ |^[a-z.]+( [a-z.]+)* (?:and|or) xor|%-?[0-9.]+[sfd]\b.*%-?[0-9.]|^-?[a-z]* ?(?:-[a-zA-Z-]+ ){3}|^[%;@=].*(?:i64|i32|i8|ptr)|\|.*\||=> |[;{] *}|\{ |\.querySelector|getElementById|^\(\(\) |^[a-z-]+ (?:type|class|id|href|role) `)
	letter       = regexp.MustCompile(`\pL`)
	actions      = regexp.MustCompile(`(?:\s*\{\{[^}]*\}\})+`) // matches the actions in a template
	element      = regexp.MustCompile(`>([^<>]{12,})<`)
	script       = regexp.MustCompile(`(?s)<script.*?</script>|<!--.*?-->`)
)

// TestLanguage checks that no text that people read contains a forbidden pattern.
func TestLanguage(t *testing.T) {
	found := map[string][]string{}
	eachSentence(t, func(kind, name, s string) {
		if said := adviceOn(s); said != "" && !uncheckedKinds[kind] {
			found[kind] = append(found[kind], name+": "+said+": "+s)
		}
	})
	for kind, list := range found {
		t.Errorf("%d sentences of %s contain forbidden patterns:\n%s", len(list), kind, strings.Join(list, "\n"))
	}
}

var draw = flag.Int("draw", 0, "print this number of random sentences of each kind of text")
var seed = flag.Uint64("seed", 1, "which random sentences")

// TestDrawSentences prints random sentences. To run it, use "go test ./tools/arch -run
// TestDrawSentences -v -draw 20 -seed 7".
func TestDrawSentences(t *testing.T) {
	if *draw == 0 {
		t.Skip("no -draw")
	}
	all := map[string][]string{}
	eachSentence(t, func(kind, name, s string) { all[kind] = append(all[kind], name+": "+strings.ToValidUTF8(s, "?")) })
	random := rand.New(rand.NewPCG(*seed, 0))
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		list := all[kind]
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		fmt.Printf("%s (%d)\n\t%s\n", kind, len(list), strings.Join(list[:min(*draw, len(list))], "\n\t"))
	}
}

// eachSentence calls "visit" for every sentence in the repository that people read.
func eachSentence(t *testing.T, visit func(kind, name, sentence string)) {
	check := func(kind, name, text string) {
		text = blanks.ReplaceAllString(strings.Trim(text, "|#> \n"), " ")
		begin := 0
		for _, end := range append(sentenceEnd.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
			if abbreviation.MatchString(text[begin:end[0]]) && end[1] < len(text) {
				continue
			}
			if s := strings.TrimSpace(text[begin:end[1]]); letter.MatchString(s) && !numbersOnly.MatchString(s) {
				visit(kind, name, s)
			}
			begin = end[1]
		}
	}
	markdown := func(kind, name, text string) {
		for _, part := range splitParagraphs(script.ReplaceAllString(codeFence.ReplaceAllString(text, ""), "")) {
			check(kind, name, part)
		}
	}
	walkFiles(t, func(name string) {
		switch {
		// do not check the descriptions of released versions
		case isBelow(path.Dir(name), "tools/beam"), name == "CHANGELOG.md":
		case name == "README.md":
			markdown("README", name, readFile(t, name))
		case path.Ext(name) == ".md" && isBelow(path.Dir(name), "site/docs"):
			markdown("manual", name, readFile(t, name))
		case path.Ext(name) == ".md":
			markdown("documents", name, readFile(t, name))
		case path.Base(path.Dir(name)) == "help" && path.Ext(name) == ".txt":
			for _, part := range strings.Split(readFile(t, name), "\n\n") {
				if !strings.HasPrefix(part, "Examples:") {
					check("help", name, part)
				}
			}
		case path.Ext(name) == ".vugu" || path.Ext(name) == ".tmpl":
			for _, m := range element.FindAllStringSubmatch(script.ReplaceAllString(readFile(t, name), ""), -1) {
				check("page", name, actions.ReplaceAllString(m[1], "…"))
			}
		case path.Base(name) == "demos.json":
			var list []struct {
				Title, Question string
				Lesson          []string
			}
			if err := json.Unmarshal([]byte(readFile(t, name)), &list); err != nil {
				t.Fatal(err)
			}
			for _, d := range list {
				check("page", name, d.Title)
				check("page", name, d.Question)
				check("page", name, strings.Join(d.Lesson, " "))
			}
		}
	})
	for _, s := range goSources(t) {
		if isBelow(s.dir, "tools/beam") {
			continue
		}
		kind := "errors"
		if isBelow(s.dir, "ui") {
			kind = "page"
		}
		if s.isTest {
			kind = "test messages"
		}
		part := map[ast.Node]bool{} // the operands of string concatenations
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr, *ast.BasicLit:
				if text := joined(n.(ast.Expr)); prose(text) && !part[n] {
					check(kind, s.name, text)
				}
				if sum, ok := n.(*ast.BinaryExpr); ok && joined(sum) != "" {
					part[sum.X], part[sum.Y] = true, true
				}
			case *ast.FuncDecl:
				if s.isTest && strings.HasPrefix(n.Name.Name, "Test") {
					check("test names", s.name, n.Name.Name)
				}
			}
			return true
		})
		known := exported(s.syntax)
		for _, group := range s.syntax.Comments {
			kind := "other comments"
			switch {
			case s.isTest:
				kind = "test comments"
			case group == s.syntax.Doc:
				kind = "package docs"
			case known[group]:
				kind = "comments"
			}
			markdown(kind, s.name, group.Text())
		}
	}
}

// splitParagraphs returns the paragraphs, list items, headings and table rows in a
// Markdown text or a Go comment, without indented code.
func splitParagraphs(text string) []string {
	var parts []string
	begins, inItem := true, false // whether the next line begins a new part, and whether the last part is a list item
	for line := range strings.Lines(text) {
		indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
		marker := listItem.FindString(line)
		switch {
		case strings.TrimSpace(line) == "":
			begins, inItem = true, false
		case marker != "":
			parts = append(parts, line[len(marker):])
			begins, inItem = false, true
		case indented && !inItem:
			begins = true
		case begins || ownLine.MatchString(line):
			parts = append(parts, line)
			begins, inItem = ownLine.MatchString(line), false
		default:
			parts[len(parts)-1] += line
		}
	}
	return parts
}

// joined returns the text of a string literal or of a string concatenation, with … in place of
// operands that are not literals. For any other expression, it returns "".
func joined(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); e.Kind == token.STRING && err == nil {
			return text
		}
	case *ast.BinaryExpr:
		if x, y := joined(e.X), joined(e.Y); e.Op == token.ADD && x+y != "" {
			return cmp.Or(x, "…") + cmp.Or(y, "…")
		}
	}
	return ""
}

// prose reports whether a string literal is a text for people, rather than a list of names, a
// column format, or markup.
func prose(text string) bool {
	return strings.Count(text, " ") >= 3 && common.MatchString(text) && !notProse.MatchString(text)
}

// adviceOn returns the advice for a forbidden pattern that a sentence contains, or ""
// if there is none.
func adviceOn(sentence string) string {
	for _, f := range forbiddenPatterns {
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

// exported returns the comments on a file's exported declarations, including their fields and
// methods.
func exported(file *ast.File) map[*ast.CommentGroup]bool {
	groups := map[*ast.CommentGroup]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			groups[n.Doc] = n.Name.IsExported()
			return false
		case *ast.TypeSpec:
			groups[n.Doc] = n.Name.IsExported()
			return n.Name.IsExported()
		case *ast.GenDecl:
			if len(n.Specs) > 0 {
				switch spec := n.Specs[0].(type) {
				case *ast.TypeSpec:
					groups[n.Doc] = spec.Name.IsExported()
				case *ast.ValueSpec:
					groups[n.Doc] = spec.Names[0].IsExported()
				}
			}
		case *ast.ValueSpec:
			groups[n.Doc], groups[n.Comment] = n.Names[0].IsExported(), n.Names[0].IsExported()
			return false
		case *ast.Field:
			named := len(n.Names) == 0 || n.Names[0].IsExported()
			groups[n.Doc], groups[n.Comment] = named, named
			return named
		}
		return true
	})
	return groups
}
