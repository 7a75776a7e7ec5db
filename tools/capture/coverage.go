package capture

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

// coverageFile is where the driver tells the compiler proper to write notes for
// gcov, or the program to write counts; clang 14 tells it in two words.
var coverageFile = regexp.MustCompile(`"(-coverage-(?:notes|data)-file)(=|" ")((?:[^"\\]|\\.)*)"`)

var quotedByDriver = regexp.MustCompile(`\\(.)`)

// coverageArguments keep the files of --coverage where they would be. They are
// named after the object or program, by rules of each version, so the driver is
// asked; what it leaves to the compiler proper is named after the source.
func (b *build) coverageArguments(src *argument) (args []string) {
	if !b.line.has("--coverage", "-coverage", "-ftest-coverage", "-fprofile-arcs") {
		return nil
	}
	asked := slices.Concat([]string{"-###"}, b.line.words(aSetting, aMachine, aPhase, anOutput))
	if src.language != "" {
		asked = append(asked, "-x", src.language)
	}
	said, _ := exec.Command(b.compiler.path, append(asked, src.name())...).CombinedOutput() // a wrong line is refused anyway
	for _, m := range coverageFile.FindAllStringSubmatch(string(said), -1) {
		file := quotedByDriver.ReplaceAllString(m[3], "$1")
		if m[2] == "=" {
			args = append(args, "-Xclang", m[1]+"="+file)
		} else {
			args = append(args, "-Xclang", m[1], "-Xclang", file)
		}
	}
	if args != nil {
		return args
	}
	for _, of := range [][2]string{{"-coverage-notes-file", ".gcno"}, {"-coverage-data-file", ".gcda"}} {
		if file, err := filepath.Abs(replaceExtension(filepath.Base(src.name()), of[1])); err == nil {
			args = append(args, "-Xclang", of[0], "-Xclang", file)
		}
	}
	return args
}
