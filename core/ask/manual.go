//go:build !js

package ask

// manual is text for the command's users. The page leaves it out, because help is a large part of
// the verbs.
func manual(text string) string { return text }
