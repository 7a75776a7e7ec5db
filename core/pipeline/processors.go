package pipeline

import (
	"embed"
	"errors"
	"strings"
)

//go:embed processors/*.yaml
var files embed.FS

// Processors returns the names of the built-in descriptions.
func Processors() (names []string) {
	list, err := files.ReadDir("processors")
	if err != nil {
		return nil
	}
	for _, f := range list {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// Description returns the text of the built-in description with the given name, or nil if there is
// no such description.
func Description(name string) []byte {
	text, err := files.ReadFile("processors/" + name + ".yaml")
	if err != nil {
		return nil
	}
	return text
}

// Named returns the processor of the built-in description with the given name.
func Named(name string) (*Processor, error) {
	text := Description(name)
	if text == nil {
		return nil, errors.New("there is no processor " + name + ", want one of " + strings.Join(Processors(), ", "))
	}
	return Read(text)
}
