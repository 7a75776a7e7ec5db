package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/site/policy"
)

// single builds one HTML file from the folder of an earlier run: index.html with everything
// inlined:
//
//  1. scripts and styles as elements, each of which the policy allows by its hash;
//  2. the icon as a data URL;
//  3. programs, demos, the manual and the workers' script as elements that the browser does not run;
//     site/single.js serves them.
//
// A page opened as a file has no origin from which it could load files, so its policy allows no
// connections.
type single struct {
	*build
	page            string
	names           map[string]string // for each file name without a hash, the name with the hash
	scripts, styles []string          // the hashes of scripts and styles, for the policy
	style           string            // style sheet of the page and the manual
	bodyEnd         strings.Builder   // the elements at the end of the body
}

// These patterns match elements of index.html.
var (
	htmlElement  = regexp.MustCompile(`<html [^>]*>`)
	policyMeta   = regexp.MustCompile(`(<meta http-equiv="Content-Security-Policy" content=")[^"]*"`)
	policyText   = regexp.MustCompile(`(<code id="policy">)[^<]*(</code>\. This policy lets scripts connect) only to this site`)
	styleLink    = regexp.MustCompile(`<link rel="stylesheet" href="([^"]+)">`)
	iconLink     = regexp.MustCompile(`(<link rel="icon" href=")([^"]+)"`)
	manifestLink = regexp.MustCompile(`<link rel="manifest"[^>]*>\n?`)
	scriptTag    = regexp.MustCompile(`<script src="([^"]+)"( defer)?></script>\n?`)
	hashInName   = regexp.MustCompile(`\.[0-9a-f]{16}(\.[a-z]+)$`)
	outside      = regexp.MustCompile(`<(?:link|script|img)[^>]* (?:src|href)="[^"#:]*"`)
)

// writeSingle writes the single HTML file to the given path.
func (b *build) writeSingle(to string) error {
	text, err := os.ReadFile(filepath.Join(b.out, "index.html"))
	if err != nil {
		return fmt.Errorf("%w; build the folder first: go run ./tools/sitebuild", err)
	}
	s := &single{build: b, page: string(text), names: map[string]string{}}
	files, err := b.files()
	if err != nil {
		return err
	}
	for _, file := range files {
		s.names[hashInName.ReplaceAllString(strings.TrimPrefix(file, policy.Hashed), "$1")] = file
	}
	for _, step := range []func() error{s.inlineStyles, s.inlineIcon, s.addFiles, s.inlineScripts, s.setPolicy} {
		if err := step(); err != nil {
			return err
		}
	}
	if left := outside.FindString(s.page); left != "" {
		return fmt.Errorf("index.html loads a resource that cannot be inlined into the single file: %s", left)
	}
	fmt.Fprintf(b.log, "%s: %d bytes\n", to, len(s.page))
	return writeFile(to, []byte(s.page))
}

// replaceEach replaces each match of a pattern with the result of the function "make". The argument
// of this function contains the match and its groups.
func (s *single) replaceEach(element *regexp.Regexp, make func(parts []string) (string, error)) (err error) {
	if !element.MatchString(s.page) {
		return fmt.Errorf("index.html has no %s", element)
	}
	s.page = element.ReplaceAllStringFunc(s.page, func(match string) string {
		text, fault := make(element.FindStringSubmatch(match))
		err = errors.Join(err, fault)
		return text
	})
	return err
}

func (s *single) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(s.out, filepath.FromSlash(name)))
}

func policyHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (s *single) inlineStyles() error {
	return s.replaceEach(styleLink, func(parts []string) (string, error) {
		text, err := s.read(parts[1])
		manual, fault := s.read(s.names["manual.css"])
		s.style = string(text) + "\n" + string(manual)
		s.styles = append(s.styles, policyHash(s.style))
		return "<style>" + s.style + "</style>", errors.Join(err, fault)
	})
}

func (s *single) inlineIcon() error {
	s.page = manifestLink.ReplaceAllString(s.page, "")
	return s.replaceEach(iconLink, func(parts []string) (string, error) {
		picture, err := s.read(parts[2])
		return parts[1] + "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(picture) + `"`, err
	})
}

// addFiles adds the files that the page fetches, and the workers' script.
func (s *single) addFiles() error {
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		if !isFetched(name) {
			continue
		}
		content, err := s.read(s.names[name])
		if err == nil {
			err = s.addFile(name, content)
		}
		if err != nil {
			return err
		}
	}
	if err := s.addManual(); err != nil {
		return err
	}
	worker, err := s.read(s.names["worker.js"])
	if err != nil {
		return err
	}
	element, err := inlineScript(`type="text/plain" data-file="worker.js"`, worker)
	s.bodyEnd.WriteString(element + "\n")
	return err
}

// addFile adds an element with the content of a file that site/single.js serves.
func (s *single) addFile(name string, content []byte) error {
	packed, err := gzipContent(content)
	s.bodyEnd.WriteString(`<script type="text/plain" data-file="` + name + `">` + base64.StdEncoding.EncodeToString(packed) + "</script>\n")
	return err
}

// addManual adds the manual as one document. The page opens the document from a blob in memory, so
// the page's policy also applies to the document. The manual therefore uses the page's style sheet.
func (s *single) addManual() error {
	manual, err := manualInOne(s.style, "default-src 'none'; img-src data:; style-src "+policyHash(s.style)+"; base-uri 'none'; form-action 'none'")
	if err != nil {
		return err
	}
	return s.addFile("manual.html", []byte(manual))
}

// isFetched reports whether the page fetches a file. The page fetches programs, and the demos'
// traces and sources.
func isFetched(name string) bool {
	switch path.Ext(name) {
	case ".wasm", ".names":
		return true
	case ".sgt", ".c":
		return path.Dir(name) == "demos"
	}
	return false
}

// inlineScript returns a script element that contains the given text.
func inlineScript(attributes string, text []byte) (string, error) {
	if lower := bytes.ToLower(text); bytes.Contains(lower, []byte("</script")) || bytes.Contains(lower, []byte("<!--")) {
		return "", fmt.Errorf("a script contains </script or <!--, so it cannot be inlined into a page: %.80q", text)
	}
	return "<script " + attributes + ">" + string(text) + "</script>", nil
}

// inlineScripts moves the deferred scripts to the end of the document, after single.js, which
// serves the files in place of a web server.
func (s *single) inlineScripts() error {
	host, err := os.ReadFile("site/single.js")
	if err == nil {
		host, err = minifyContent("single.js", host)
	}
	if err == nil {
		err = s.addScript("single.js", host)
	}
	if err != nil {
		return err
	}
	deferred := []string{s.names["heatmap.js"], s.names["timeline.js"], s.names["matrix.js"], s.names["graph.js"], s.names["flame.js"], s.names["terms.js"]}
	err = s.replaceEach(scriptTag, func(parts []string) (string, error) {
		if parts[2] != "" {
			deferred = append(deferred, parts[1])
			return "", nil
		}
		text, err := s.read(parts[1])
		s.scripts = append(s.scripts, policyHash(string(text)))
		element, fault := inlineScript("", text)
		return element + "\n", errors.Join(err, fault)
	})
	for _, file := range deferred {
		if err != nil {
			return err
		}
		var text []byte
		if text, err = s.read(file); err == nil {
			err = s.addScript(hashInName.ReplaceAllString(path.Base(file), "$1"), text)
		}
	}
	s.page = strings.Replace(s.page, "</body>", s.bodyEnd.String()+"</body>", 1)
	return err
}

// addScript adds a script to the end of the body.
func (s *single) addScript(name string, text []byte) error {
	s.scripts = append(s.scripts, policyHash(string(text)))
	element, err := inlineScript(`data-file="`+name+`"`, text)
	s.bodyEnd.WriteString(element + "\n")
	return err
}

// setPolicy sets the content security policy of the single HTML file, and marks the document as a
// single file.
func (s *single) setPolicy() error {
	text := html.EscapeString(policy.Single(s.scripts, s.styles))
	return errors.Join(
		s.replaceEach(htmlElement, func([]string) (string, error) {
			return `<html lang="en" data-single="1" data-program="app.wasm" data-worker="worker.js?wasm=app.wasm&amp;unpack=worker.js%3Fwasm%3Dunpack.wasm" data-unpacker="worker.js?wasm=unpack.wasm">`, nil
		}),
		s.replaceEach(policyMeta, func(parts []string) (string, error) { return parts[1] + text + `"`, nil }),
		s.replaceEach(policyText, func(parts []string) (string, error) { return parts[1] + text + parts[2] + " to nothing", nil }),
	)
}
