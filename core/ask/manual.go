//go:build !js

package ask

// manual returns its argument, which is a help text for users of the command. In the page, manual
// returns "", because help texts would make up much of the code size of the verbs.
func manual(text string) string { return text }
