package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"strconv"
)

// demo is an entry of site/demos/demos.json.
type demo struct {
	Name       string   `json:"name"`
	Title      string   `json:"title"`
	Question   string   `json:"question"`
	File       string   `json:"file"`
	References uint64   `json:"references"`
	Lesson     []string `json:"lesson"`
	Source     string   `json:"source"`
}

// Millions is the number of references as the card shows it.
func (d demo) Millions() string {
	return strconv.FormatFloat(float64(d.References)/1e6, 'f', 1, 64) + " M references"
}

// demos reads the list; there is none before the demos are made.
func demos(path string) ([]demo, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []demo
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, d := range list {
		if d.Name == "" || d.Title == "" || d.Question == "" || d.File == "" {
			return nil, fmt.Errorf("%s: entry %d: name, title, question and file must not be empty", path, i)
		}
	}
	return list, nil
}

func (b *build) writeIndex() error {
	list, err := demos("site/demos/demos.json")
	if err != nil {
		return err
	}
	page, err := template.ParseFiles("site/index.tmpl")
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = page.Execute(&out, struct {
		Policy string
		Demos  []demo
	}{metaPolicy(), list})
	if err != nil {
		return err
	}
	return b.write("index.html", out.Bytes())
}
