package gate

// Literals returns the values of text when it is a list of text literals separated by commas, and false when it is anything else or is refused.
func Literals(d Dialect, text string) ([]string, bool) { return list(d, text, tokenString) }

// Names returns the names of text when it is a list of quoted names separated by commas.
func Names(d Dialect, text string) ([]string, bool) { return list(d, text, tokenName) }

func list(d Dialect, text string, kind tokenKind) ([]string, bool) {
	tokens, r := scan(d, text)
	if r != nil {
		return nil, false
	}
	var values []string
	for i, t := range tokens {
		switch {
		case i%2 == 0 && t.kind == kind:
			values = append(values, t.value)
		case i%2 == 1 && t.isOp(","):
		case i%2 == 1 && t.kind == tokenEnd:
			return values, true
		default:
			return nil, false
		}
	}
	return nil, false
}
