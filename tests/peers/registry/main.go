// A stock OCI registry (the distribution project's), and a client that pushes and pulls as ORAS
// does:
//
//	registry serve ADDRESS FOLDER [REALM] [USER:PASSWORD]
//	    REALM is the URL of the token server, which this program serves too: the registry then
//	    requires a token. With a user, the token server requires the credentials of this user; if
//	    REALM is empty (""), the registry itself requires them (RFC 7617).
//	registry push FILE HOST/NAME:TAG [TYPE]      push a disk image over HTTP; TYPE is the media type
//	    of the layer
//	registry image BUSYBOX HOST/NAME:TAG [USER]  push a container image over HTTP
//	registry pull HOST/NAME:TAG FOLDER           pull a whole image over HTTP into an OCI layout
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/silly"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/file"
	"oras.land/oras-go/v2/registry/remote"
)

// Media type of a disk image, for ORAS and for upstream's oci2disk.
const layerType = "application/vnd.oci.image.layer.v1.tar"

func main() {
	arguments := append(os.Args[1:], "", "", "", "")
	var err error
	switch arguments[0] {
	case "serve":
		err = serve(arguments[1], arguments[2], arguments[3], arguments[4])
	case "push":
		err = push(arguments[1], arguments[2], arguments[3])
	case "image":
		err = pushImage(arguments[1], arguments[2], arguments[3])
	case "pull":
		err = pull(arguments[1], arguments[2])
	default:
		err = fmt.Errorf("usage: registry serve … | push … | image … | pull …, see main.go")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func serve(address, folder, realm, user string) error {
	config := &configuration.Configuration{
		Version: "0.1",
		Storage: configuration.Storage{
			"filesystem": configuration.Parameters{"rootdirectory": folder},
		},
	}
	config.Log.Level = "warn"
	config.Log.AccessLog.Disabled = true
	if realm != "" {
		parameters := configuration.Parameters{"realm": realm, "service": "tests"}
		config.Auth = configuration.Auth{"silly": parameters}
		at, err := url.Parse(realm)
		if err != nil {
			return err
		}
		// The token is constant: the registry's auth driver `silly` accepts any token.
		http.HandleFunc(at.Path, func(answer http.ResponseWriter, asked *http.Request) {
			if !isUser(asked, user) {
				http.Error(answer, "who are you?", http.StatusUnauthorized)
				return
			}
			log.Printf("token for %s of %s", asked.FormValue("scope"), asked.FormValue("service"))
			fmt.Fprintln(answer, `{"token":"a.b.c"}`)
		})
	}
	app := handlers.NewApp(context.Background(), config)
	http.HandleFunc("/v2/", func(answer http.ResponseWriter, asked *http.Request) {
		log.Printf("%s %s %s", asked.Method, asked.URL.Path, asked.Header.Get("Range"))
		if realm == "" && !isUser(asked, user) {
			answer.Header().Set("WWW-Authenticate", `Basic realm="tests"`)
			http.Error(answer, "who are you?", http.StatusUnauthorized)
			return
		}
		app.ServeHTTP(answer, asked)
	})
	return http.ListenAndServe(address, nil)
}

// Returns true if the request has the credentials USER:PASSWORD, or if no user is set.
func isUser(asked *http.Request, user string) bool {
	name, password, _ := asked.BasicAuth()
	return user == "" || name+":"+password == user
}

func push(path, reference, mediaType string) error {
	if mediaType == "" {
		mediaType = layerType
	}
	context := context.Background()
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	store, err := file.New(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer store.Close()
	layer, err := store.Add(context, filepath.Base(path), mediaType, path)
	if err != nil {
		return err
	}
	options := oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}}
	manifest, err := oras.PackManifest(
		context, store, oras.PackManifestVersion1_1, "application/vnd.tests.disk", options)
	if err != nil {
		return err
	}
	if err := publish(context, store, manifest, reference); err != nil {
		return err
	}
	fmt.Println(layer.Digest)
	return nil
}

// Tags the contents of a store and copies them to the registry of the reference.
func publish(
	context context.Context, store oras.Target, root ocispec.Descriptor, reference string,
) error {
	repository, err := remote.NewRepository(reference)
	if err != nil {
		return err
	}
	repository.PlainHTTP = true
	tag := repository.Reference.Reference
	if err := store.Tag(context, root, tag); err != nil {
		return err
	}
	_, err = oras.Copy(context, store, tag, repository, tag, oras.DefaultCopyOptions)
	return err
}
