package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stackglass/stackglass/site"
)

// TestReferenceIsGenerated checks that the two generated pages of the manual match the options of
// the verbs and the answers in testdata/golden. With -update, the test rewrites the two pages.
func TestReferenceIsGenerated(t *testing.T) {
	for name, text := range map[string]string{"options": optionsPage(t), "output": outputPage(t)} {
		file := filepath.Join("..", "..", "..", "..", "site", "docs", name+".md")
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("%s differs from the program; update it with -update (%v)", file, err)
		}
	}
}

// optionsPage returns the page that lists all verbs and their options.
func optionsPage(t *testing.T) string {
	var out strings.Builder
	out.WriteString("# Commands and options\n\n<!-- Made by go test ./tools/stackglass/internal/command -run TestReferenceIsGenerated -update; DO NOT EDIT. -->\n\n" +
		"`stackglass help VERB` prints more about each command, with examples. `stackglass help ask` names the command for each question.\n")
	root := (&app{}).root()
	var shared *cobra.Command
	for _, g := range groupsOf(root) {
		out.WriteString("\n## " + g.title + "\n")
		for _, name := range g.verbs {
			if name == "help" || name == "completion" {
				continue // the package Cobra adds these verbs when the program runs
			}
			verb, _, err := root.Find([]string{name})
			if err != nil || verb == root {
				t.Fatalf("there is no verb %s: %v", name, err)
			}
			out.WriteString("\n### " + name + "\n\n" + verb.Short + ".\n\n    " + verb.UseLine() + "\n")
			list, reads := "", false
			verb.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if f.Name == "help" || f.Hidden {
					return
				}
				if slices.Contains(readingOptions, f.Name) && name != "convert" {
					reads = true
					return
				}
				list += optionItem(f)
			})
			if list != "" {
				out.WriteString("\n" + list)
			}
			if reads {
				out.WriteString("\nAlso accepts the [options for reading a trace](#options-for-reading-a-trace).\n")
			}
			if name == "what-if" {
				shared = verb
			}
		}
	}
	out.WriteString("\n## Options for reading a trace\n\nThese options are rejected for a profile, because their values are fixed when the profile is made. Not every verb has all of these options.\n\n")
	for _, name := range readingOptions {
		out.WriteString(optionItem(shared.Flags().Lookup(name)))
	}
	return out.String()
}

func optionItem(f *pflag.Flag) string {
	value, text := pflag.UnquoteUsage(f)
	item := "- `--" + f.Name
	if f.Shorthand != "" {
		item = "- `-" + f.Shorthand + "`, `--" + f.Name
	}
	if value != "" {
		item += " " + value
	}
	item += "`: " + text
	if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" && f.DefValue != "[]" {
		item += " (default `" + f.DefValue + "`)"
	}
	return item + "\n"
}

// outputPage returns the page that lists the tables and columns of JSON answers, as found in
// testdata/golden.
func outputPage(t *testing.T) string {
	type table struct {
		name    string
		columns []string
		single  bool
	}
	tables := map[string][]table{}
	for _, line := range goldenCommands {
		if !strings.Contains(line, "--format json") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("testdata", "golden", awkward.ReplaceAllString(line, "_")+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(strings.NewReader(string(text)))
		next := func() json.Token {
			token, err := d.Token()
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return token
		}
		verb, list := strings.Fields(line)[0], []table(nil)
		next() // {
		for d.More() {
			name := next().(string)
			var value json.RawMessage
			if err := d.Decode(&value); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if name == "schema" || name == "warnings" {
				continue
			}
			columns, single := keysOf(value)
			list = append(list, table{name, columns, single})
		}
		for _, found := range list {
			at := slices.IndexFunc(tables[verb], func(t table) bool { return t.name == found.name })
			if at < 0 {
				tables[verb] = append(tables[verb], found)
				continue
			}
			known := &tables[verb][at]
			for _, column := range found.columns {
				if !slices.Contains(known.columns, column) {
					known.columns = append(known.columns, column)
				}
			}
		}
	}
	var out strings.Builder
	out.WriteString(`# JSON and CSV

<!-- Made by go test ./tools/stackglass/internal/command -run TestReferenceIsGenerated -update; DO NOT EDIT. -->

` + "`--format json` prints one object:" + `

    {
      "schema": {"name": "stackglass.what-if", "version": 1},
      "input": {"file": "app.sgt", "references": 66560, "complete": true},
      "levels": [{"name": "L1", "size_bytes": 2048, "misses": 33920}],
      "warnings": []
    }

- ` + "`schema`" + ` names the verb. The version increases if a column is removed or its meaning changes. New columns
  and tables may be added without a new version: ignore unknown names.
- ` + "`input`" + ` contains facts about the file. If ` + "`complete`" + ` is false, the trace or the pass ended early.
- Every other member is a table: a list of rows, or one object.
- Units are in the names: ` + "`_bytes`, `_lines`, `_cycles`, `_ns`, `_ghz`" + `. A share, ` + "such as `miss_ratio`" + `, is between 0
  and 1. Counts have no unit. ` + "`null`" + ` means that the number does not exist or is unknown.
- Numbers computed by a model can have decimal places; ` + "`method`" + ` names the model. The last of their 16 digits may
  differ between processor architectures, but profiles are byte-identical on all architectures.

` + "`--format csv`" + ` prints one table of the answer, usually the first, with the same columns as in JSON. The format is RFC 4180
with a header line, but lines end with a line feed. ` + "`export --to csv`" + ` writes every table into a folder.

The lists below are generated from stored answers, which the tests compare with the output of the command. Some columns appear only if the trace contains the necessary data, such as sizes, threads or sites.
`)
	for _, verb := range slices.Sorted(func(yield func(string) bool) {
		for verb := range tables {
			if !yield(verb) {
				return
			}
		}
	}) {
		out.WriteString("\n## " + verb + "\n\n")
		for _, t := range tables[verb] {
			kind := "list"
			if t.single {
				kind = "object"
			}
			out.WriteString("- `" + t.name + "` (" + kind + ")")
			if len(t.columns) > 0 {
				out.WriteString(": `" + strings.Join(t.columns, "`, `") + "`")
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}

// keysOf returns the keys of an object, or of the first object in a list, in order.
func keysOf(value json.RawMessage) (keys []string, single bool) {
	d := json.NewDecoder(strings.NewReader(string(value)))
	token, err := d.Token()
	single = token == json.Delim('{')
	if err != nil || !single && token != json.Delim('[') {
		return nil, true
	}
	if !single {
		if token, err = d.Token(); err != nil || token != json.Delim('{') {
			return nil, false
		}
	}
	for d.More() {
		key, err := d.Token()
		var skipped json.RawMessage
		if err != nil || d.Decode(&skipped) != nil {
			break
		}
		keys = append(keys, key.(string))
	}
	return keys, single
}

// TestTopics checks that the verb "help" prints every page of the manual, and that the manual's
// index lists every page.
func TestTopics(t *testing.T) {
	listed := map[string]bool{}
	for _, topic := range site.Manual() {
		listed[topic.File] = true
		if got := stackglass("help", topic.Name); got.code != 0 || !strings.HasPrefix(got.stdout, "# ") {
			t.Errorf("stackglass help %s prints %.60q, exit code %d", topic.Name, got.stdout, got.code)
		}
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "site", "docs", "*.md"))
	if err != nil || len(files) < 20 {
		t.Fatal("no pages", err)
	}
	for _, file := range files {
		if name := "site/docs/" + filepath.Base(file); !listed[name] {
			t.Errorf("%s is not listed in site/docs/index.md", name)
		}
	}
	for _, verb := range verbs((&app{}).root()) {
		if manualPage(verb) != nil {
			t.Errorf("%s is both a verb and a page of the manual", verb)
		}
	}
}
