package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// Values of the string types that a package marks with `+enum`, by package and name of the type.
type enums map[string]map[string][]string

// Returns the values of a type, sorted; none for a type that accepts any text.
func (e enums) of(goType reflect.Type) []string {
	path := goType.PkgPath()
	if goType.Kind() != reflect.String || path == "" {
		return nil
	}
	if e[path] == nil {
		e[path] = readEnums(path)
	}
	return e[path][goType.Name()]
}

// Reads a package's source: the types marked with `+enum`, and the constants of each.
func readEnums(path string) map[string][]string {
	folder, err := exec.Command("go", "list", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		panic(err)
	}
	packages, err := parser.ParseDir(
		token.NewFileSet(), strings.TrimSpace(string(folder)), nil, parser.ParseComments)
	if err != nil {
		panic(err)
	}
	marked, found := map[string]bool{}, map[string][]string{}
	for _, one := range packages {
		for _, file := range one.Files {
			for _, declaration := range file.Decls {
				if general, ok := declaration.(*ast.GenDecl); ok {
					readDeclaration(general, marked, found)
				}
			}
		}
	}
	for name, values := range found {
		if marked[name] {
			sort.Strings(values)
		} else {
			delete(found, name)
		}
	}
	return found
}

func readDeclaration(general *ast.GenDecl, marked map[string]bool, found map[string][]string) {
	for _, specification := range general.Specs {
		switch one := specification.(type) {
		case *ast.TypeSpec:
			if hasMark(general.Doc) || hasMark(one.Doc) {
				marked[one.Name.Name] = true
			}
		case *ast.ValueSpec:
			name, ok := one.Type.(*ast.Ident)
			if !ok || general.Tok != token.CONST {
				continue
			}
			for _, value := range one.Values {
				if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil {
						found[name.Name] = append(found[name.Name], text)
					}
				}
			}
		}
	}
}

func hasMark(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, line := range doc.List {
		if strings.TrimSpace(strings.TrimPrefix(line.Text, "//")) == "+enum" {
			return true
		}
	}
	return false
}
