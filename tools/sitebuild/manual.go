package main

import (
	"bytes"
	"fmt"
	"html/template"
	"os"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"

	"github.com/stackglass/stackglass/site/policy"
)

// manualPage is a page of the manual.
type manualPage struct{ File, Title, text string }

// manualOrder is the order in which a reader needs the pages.
var manualOrder = []string{"index", "record", "ask", "predict", "host"}

var (
	inManual = regexp.MustCompile(`href="([a-z-]+)\.md`)
	// A link to a file of the repository, which is not on the site: its text is enough.
	inRepository = regexp.MustCompile(`<a href="\.\./[^"]*">(.*?)</a>`)
	codeBlock    = regexp.MustCompile(`<pre>`)
)

// writeManual writes site/docs as pages of docs/, under the page's policy.
func (b *build) writeManual() error {
	var pages []manualPage
	for _, name := range manualOrder {
		text, err := os.ReadFile("site/docs/" + name + ".md")
		if err != nil {
			return err
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		pages = append(pages, manualPage{name + ".html", title, string(text)})
	}
	layout, err := template.New("manual.tmpl").Funcs(template.FuncMap{"address": b.address}).ParseFiles("site/manual.tmpl")
	if err != nil {
		return err
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	for _, page := range pages {
		var body, out bytes.Buffer
		if err := markdown.Convert([]byte(page.text), &body); err != nil {
			return fmt.Errorf("site/docs, %s: %w", page.Title, err)
		}
		text := inManual.ReplaceAllString(body.String(), `href="$1.html`)
		text = inRepository.ReplaceAllString(text, "$1")
		text = codeBlock.ReplaceAllString(text, `<pre tabindex="0">`) // which scroll
		err := layout.Execute(&out, struct {
			manualPage
			Policy string
			Pages  []manualPage
			Body   template.HTML
		}{page, policy.Meta, pages, template.HTML(text)})
		if err != nil {
			return err
		}
		if err := b.write("docs/"+page.File, out.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
