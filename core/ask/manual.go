//go:build !js

package ask

// manual returns help text for the command's users. The page omits help texts, because they are a
// large part of the code of the verbs.
func manual(text string) string { return text }
