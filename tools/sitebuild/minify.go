package main

import (
	"fmt"
	"path"

	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/css"
	"github.com/tdewolff/minify/v2/js"
)

// minified returns minified scripts and styles, and other files unchanged.
func minified(name string, content []byte) ([]byte, error) {
	const script, style = "text/javascript", "text/css"
	m := minify.New()
	m.AddFunc(style, css.Minify)
	m.AddFunc(script, js.Minify)
	mediaType := map[string]string{".js": script, ".css": style}[path.Ext(name)]
	if mediaType == "" {
		return content, nil
	}
	short, err := m.Bytes(mediaType, content)
	if err != nil {
		return nil, fmt.Errorf("minifying %s: %w", name, err)
	}
	return short, nil
}
