package main

import (
	"embed"
	"strings"
)

//go:embed snippets/*.txt
var snippetFiles embed.FS

// A snippet is the code for one class of instructions on one kind of machine: ways to write
// it, the best first; a processor takes the first that its assembler knows. The lines of one
// way are instructions in sequence.
type snippet struct {
	key  string // class and type, as in the description
	ways []string
}

// readSnippets reads the snippets for an instruction set.
func readSnippets(isa string) (list []snippet, err error) {
	text, err := snippetFiles.ReadFile("snippets/" + isa + ".txt")
	for line := range strings.Lines(string(text)) {
		if key, ways, found := strings.Cut(strings.TrimSpace(line), ": "); found && !strings.HasPrefix(line, "#") {
			list = append(list, snippet{key, strings.Split(strings.ReplaceAll(ways, "; ", "\n"), " | ")})
		}
	}
	return list, err
}
