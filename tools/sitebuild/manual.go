package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"

	"github.com/stackglass/stackglass/site"
	"github.com/stackglass/stackglass/site/policy"
)

// manualPage is a page of the manual.
type manualPage struct {
	site.Topic
	Body template.HTML
}

// manualGroup contains the pages below one heading of the manual's menu.
type manualGroup struct {
	Title string
	Pages []manualPage
}

var (
	localLink   = regexp.MustCompile(`(?s)<a href="([^":#]*)(#[^"]*)?">(.*?)</a>`)
	codeBlock   = regexp.MustCompile(`<pre>`)
	wideTable   = regexp.MustCompile(`(?s)<table>.*?</table>`)
	headingHTML = regexp.MustCompile(`(?s)<h([123]) id="([^"]*)">(.*?)</h[123]>`)
	anyTag      = regexp.MustCompile(`<[^>]*>`)
	anchorID    = regexp.MustCompile(` id="([^"]*)"`)
	picture     = regexp.MustCompile(`src="([a-z-]+\.svg)"`)
	pictureSize = regexp.MustCompile(`<svg [^>]*( width="[0-9]+" height="[0-9]+")`)
	spaces      = regexp.MustCompile(`\s+`)
)

// manualPages renders the manual's Markdown.
func manualPages() (pages []manualPage, err error) {
	topics := site.Manual()
	names := map[string]string{}
	for _, topic := range topics {
		names[topic.File] = topic.Name
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	for _, topic := range topics {
		text, err := os.ReadFile(topic.File)
		if err != nil {
			return nil, err
		}
		var body bytes.Buffer
		if err := markdown.Convert(text, &body); err != nil {
			return nil, fmt.Errorf("%s: %w", topic.File, err)
		}
		linked := localLink.ReplaceAllStringFunc(body.String(), func(link string) string {
			parts := localLink.FindStringSubmatch(link)
			if parts[1] == "" {
				return link
			}
			if name := names[path.Join(path.Dir(topic.File), parts[1])]; name != "" {
				return `<a href="` + name + ".html" + parts[2] + `">` + parts[3] + "</a>"
			}
			return parts[3] // a link to a file of the repository that is not on the site
		})
		linked = codeBlock.ReplaceAllString(linked, `<pre tabindex="0">`) // so that code blocks can be scrolled with the keyboard
		if topic.Name == "glossary" {
			_, linked = glossary(linked)
		}
		linked = wideTable.ReplaceAllString(linked, `<div class="wide" tabindex="0">$0</div>`)
		// add the picture's size, so that the text below it does not move when it is loaded
		linked = picture.ReplaceAllStringFunc(linked, func(src string) string {
			content, fault := os.ReadFile("site/docs/" + picture.FindStringSubmatch(src)[1])
			size := pictureSize.FindSubmatch(content)
			if fault != nil || size == nil {
				err = fmt.Errorf("%s: the picture %s has no size", topic.File, src)
				return src
			}
			return src + string(size[1])
		})
		if err != nil {
			return nil, err
		}
		pages = append(pages, manualPage{topic, template.HTML(linked)})
	}
	return pages, nil
}

// groupPages returns the pages in groups. It omits the first page, which is the table of contents.
func groupPages(pages []manualPage) (groups []manualGroup) {
	for _, page := range pages[1:] {
		if len(groups) == 0 || groups[len(groups)-1].Title != page.Group {
			groups = append(groups, manualGroup{Title: page.Group})
		}
		last := &groups[len(groups)-1]
		last.Pages = append(last.Pages, page)
	}
	return groups
}

// plainText returns the text of an HTML fragment.
func plainText(piece string) string {
	return strings.TrimSpace(spaces.ReplaceAllString(html.UnescapeString(anyTag.ReplaceAllString(piece, " ")), " "))
}

// manualIndex returns the script that the manual's search reads. For each section, it contains the
// page, the anchor, the page title, the heading and the text.
func manualIndex(pages []manualPage) ([]byte, error) {
	var sections [][5]string
	for _, page := range pages {
		body := string(page.Body)
		at := headingHTML.FindAllStringSubmatchIndex(body, -1)
		for i, m := range at {
			end := len(body)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			sections = append(sections, [5]string{page.Name, body[m[4]:m[5]], page.Title, plainText(body[m[6]:m[7]]), plainText(body[m[1]:end])})
		}
	}
	text, err := json.Marshal(sections)
	return append(append([]byte("window.manualIndex="), text...), ";\n"...), err
}

// writeManual writes the manual as pages in docs/, with the content security policy of the page.
func (b *build) writeManual() error {
	pages, err := manualPages()
	if err != nil {
		return err
	}
	index, err := manualIndex(pages)
	if err == nil {
		err = b.write("manual-index.js", index)
	}
	if err != nil {
		return err
	}
	if err := b.writeTerms(pages); err != nil {
		return err
	}
	layout, err := template.New("manual.tmpl").Funcs(template.FuncMap{"address": b.urlOf}).ParseFiles("site/manual.tmpl")
	if err != nil {
		return err
	}
	for _, page := range pages {
		var out bytes.Buffer
		err := layout.Execute(&out, struct {
			manualPage
			Policy string
			Groups []manualGroup
		}{page, policy.Meta, groupPages(pages)})
		if err != nil {
			return err
		}
		if err := b.write("docs/"+page.Name+".html", out.Bytes()); err != nil {
			return err
		}
	}
	pictures, err := os.ReadDir("site/docs")
	for _, file := range pictures {
		if err == nil && path.Ext(file.Name()) == ".svg" {
			err = b.copy("docs/"+file.Name(), "site/docs/"+file.Name())
		}
	}
	return err
}

// manualInOne returns the manual as one document without scripts, for the single HTML file. Anchors
// begin with the names of their pages.
func manualInOne(styles, policy string) (string, error) {
	pages, err := manualPages()
	if err != nil {
		return "", err
	}
	for i, page := range pages {
		body := anchorID.ReplaceAllString(string(page.Body), ` id="`+page.Name+`--$1"`)
		body = localLink.ReplaceAllStringFunc(body, func(link string) string {
			parts := localLink.FindStringSubmatch(link)
			to := strings.TrimSuffix(parts[1], ".html")
			if to == "" {
				to = page.Name
			}
			if parts[2] != "" {
				to += "--" + parts[2][1:]
			}
			return `<a href="#` + to + `">` + parts[3] + "</a>"
		})
		body = picture.ReplaceAllStringFunc(body, func(src string) string {
			content, fault := os.ReadFile("site/docs/" + picture.FindStringSubmatch(src)[1])
			if fault != nil {
				err = fault
			}
			return `src="data:image/svg+xml;base64,` + base64.StdEncoding.EncodeToString(content) + `"`
		})
		pages[i].Body = template.HTML(body)
	}
	if err != nil {
		return "", err
	}
	layout, err := template.ParseFiles("site/manual-one.tmpl")
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = layout.Execute(&out, struct {
		Policy string
		Styles template.CSS
		Groups []manualGroup
		Pages  []manualPage
	}{policy, template.CSS(styles), groupPages(pages), pages})
	return out.String(), err
}
