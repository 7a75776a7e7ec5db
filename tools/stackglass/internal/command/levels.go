package command

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/hierarchy/config"
	"github.com/stackglass/stackglass/core/trace"
)

// presetNames returns the names of the presets. The presets are parsed only once, because the
// options and the help of every verb list the presets.
var presetNames = sync.OnceValue(func() (names []string) {
	for _, h := range hierarchy.Presets() {
		names = append(names, h.Name)
	}
	return names
})

// cacheUsage is the help text of --cache for verbs without default caches.
const cacheUsage = "add this cache `LEVEL`, for example L1=32KiB,8 (repeat for each level)"

// machineOptions contains the values of --cache and --hierarchy.
type machineOptions struct {
	caches []string
	named  string
}

func (m *machineOptions) addMachine(cmd *cobra.Command, cacheUsage string) {
	cmd.Flags().StringArrayVar(&m.caches, "cache", nil, cacheUsage)
	cmd.Flags().StringVar(&m.named, "hierarchy", "", "the hierarchy: the name of a processor, or a `FILE` that describes a hierarchy")
	setFileCompletions(cmd, "hierarchy", presetNames())
}

// isGiven reports whether the user specified a hierarchy.
func (m *machineOptions) isGiven() bool { return len(m.caches) > 0 || m.named != "" }

// hierarchy returns the hierarchy that the options describe.
func (m *machineOptions) hierarchy() (hierarchy.Hierarchy, error) {
	return chooseHierarchy(m.caches, m.named)
}

// chooseHierarchy returns the hierarchy from --cache or --hierarchy.
func chooseHierarchy(caches []string, named string) (hierarchy.Hierarchy, error) {
	switch {
	case len(caches) > 0 && named != "":
		return hierarchy.Hierarchy{}, usagef("--cache and --hierarchy cannot be combined: give only one of these options")
	case len(caches) > 0:
		return parseLevels(caches)
	case named == "":
		return hierarchy.Hierarchy{}, usagef("no caches are given: add --cache L1=32KiB,8, or --hierarchy with one of ", strings.Join(presetNames(), ", "))
	}
	return namedHierarchy("hierarchy", named)
}

// namedHierarchy returns the hierarchy whose name is the value of an option: a preset, or the
// contents of a file.
func namedHierarchy(option, named string) (hierarchy.Hierarchy, error) {
	h, unknown := hierarchy.Preset(named)
	if unknown == nil {
		return h, nil
	}
	if strings.Contains(named, " ") && config.Recognise([]byte(named)) == config.DineroIV {
		h, err := readHierarchy("--"+option, "", []byte(named))
		h.Name = "DineroIV's options"
		return h, err
	}
	text, err := os.ReadFile(named)
	if err != nil {
		return h, usagef("--", option, strings.TrimPrefix(unknown.Error(), "hierarchy"), ", or a readable file; the presets are ", strings.Join(presetNames(), ", "))
	}
	return readHierarchy("--"+option+" "+named, named, text)
}

// parseLevels parses the values of --cache.
func parseLevels(caches []string) (h hierarchy.Hierarchy, err error) {
	for _, text := range caches {
		if err := h.Add(text); err != nil {
			var option *trace.OptionError
			if errors.As(err, &option) && option.Option == "cache" {
				return h, asUsage(err)
			}
			return h, usagef("--cache ", text, ": ", err.Error())
		}
	}
	if len(h.Levels) == 0 {
		return h, usagef("--cache ", strings.Join(caches, ", "), ": the list contains no cache; add a cache such as L1=32KiB,8")
	}
	return h, checkCacheNames("--cache", h)
}

// readHierarchy parses a file in YAML or in one of the formats of package config. The field About
// of the result lists the settings that a [hierarchy.Hierarchy] cannot express. The parameter
// "where" is the option that names the file.
func readHierarchy(where, path string, text []byte) (h hierarchy.Hierarchy, err error) {
	var notes []string
	form := config.Recognise(text)
	if form == config.YAML {
		h, err = readYAML(text)
	} else {
		h, notes, err = config.Read(text)
	}
	if err != nil {
		return h, usagef(where, " (read as ", string(form), "): ", err.Error())
	}
	if h.Name == "" {
		h.Name = path
	}
	h.About = strings.TrimSpace(h.About + " " + strings.Join(notes, "; "))
	return h, checkCacheNames(where, h)
}

// checkCacheNames returns an error if the name of a cache would be ambiguous in --fail-if.
func checkCacheNames(where string, h hierarchy.Hierarchy) error {
	for _, c := range h.Levels {
		if c.Name == "memory" || strings.ContainsAny(c.Name, ".<>") {
			return usagef(where, ": a cache cannot be named ", strconv.Quote(c.Name),
				": the name memory and the characters . < > have a special meaning in --fail-if; use a different name, for example L1")
		}
	}
	return nil
}

// readYAML parses a description in YAML.
func readYAML(text []byte) (hierarchy.Hierarchy, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return hierarchy.Hierarchy{}, err
	}
	if len(document.Content) == 0 {
		return hierarchy.Hierarchy{}, &config.Error{Line: 1, Text: "the file is empty"}
	}
	node, err := fromYAML(document.Content[0])
	if err != nil {
		return hierarchy.Hierarchy{}, err
	}
	return config.FromNode(node)
}

// fromYAML converts a YAML node. It rejects aliases, because a few bytes of aliases can expand to
// gigabytes, and hierarchies do not need them.
func fromYAML(from *yaml.Node) (config.Node, error) {
	to := config.Node{Line: from.Line, Text: from.Value}
	switch from.Kind {
	case yaml.ScalarNode:
		if from.Tag == "!!str" {
			to.Kind = config.String
		}
		return to, nil
	case yaml.SequenceNode:
		to.Kind = config.List
		for _, item := range from.Content {
			n, err := fromYAML(item)
			if err != nil {
				return to, err
			}
			to.Items = append(to.Items, n)
		}
		return to, nil
	case yaml.MappingNode:
		to.Kind = config.Object
		for i := 0; i+1 < len(from.Content); i += 2 {
			n, err := fromYAML(from.Content[i+1])
			if err != nil {
				return to, err
			}
			to.Fields = append(to.Fields, config.Member{Key: from.Content[i].Value, Line: from.Content[i].Line, Value: n})
		}
		return to, nil
	}
	return to, &config.Error{Line: from.Line, Text: "YAML aliases, anchors and similar constructs are not supported in a hierarchy"}
}
