package blob

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/minio/minio-go/v7"
)

// Verbs of S3 as errors name them, with the permission that each needs.
const (
	verbPut    = "put object"
	verbGet    = "get object"
	verbStat   = "stat object"
	verbList   = "list objects"
	verbDelete = "delete object"
	verbAbort  = "abort upload of object"
	verbFind   = "list unfinished uploads"
)

func permission(verb string) string {
	switch verb {
	case verbPut:
		return "s3:PutObject"
	case verbGet:
		return "s3:GetObject"
	case verbStat:
		return "s3:GetObject (and s3:ListBucket, to tell a missing object)"
	case verbList:
		return "s3:ListBucket"
	case verbDelete:
		return "s3:DeleteObject"
	case verbAbort:
		return "s3:AbortMultipartUpload"
	}
	return "s3:ListBucketMultipartUploads"
}

// errSlow is why a request is given up that neither answers nor moves.
var errSlow = errors.New("no answer in time")

// An s3Error is a failed call: verb, bucket, key, the store's status and what to do.
type s3Error struct {
	verb   string
	place  string // s3://bucket/prefix
	key    string
	status int
	code   string
	cause  error  // as said to the user
	hint   string // what to do
	retry  bool   // it may go better the next time
}

func (e *s3Error) Error() string {
	text := fmt.Sprintf("%s %s in %s: ", e.verb, e.key, e.place)
	if e.key == "" {
		text = fmt.Sprintf("%s in %s: ", e.verb, e.place)
	}
	if e.status != 0 {
		text += fmt.Sprintf("%d ", e.status)
	}
	text += e.cause.Error()
	if e.hint != "" {
		text += ": " + e.hint
	}
	return text
}

func (e *s3Error) Unwrap() error { return e.cause }

// codeOf returns the store's code of a failed call, or "".
func codeOf(err error) string {
	var e *s3Error
	if errors.As(err, &e) {
		return e.code
	}
	return ""
}

// explain makes an s3Error of what the client library returned.
func (s *S3) explain(verb, key string, err error) *s3Error {
	e := &s3Error{verb: verb, place: s.place(), key: key, cause: err}
	var resp minio.ErrorResponse
	switch {
	case errors.As(err, &resp):
		s.explainStatus(e, resp)
	case errors.Is(err, errCredentials):
		e.hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a file with credentials=/PATH"
	default:
		s.explainNetwork(e, err)
	}
	return e
}

// explainNetwork is about requests that got no answer. The library's text has the whole
// address in it; ours says host and reason.
func (s *S3) explainNetwork(e *s3Error, err error) {
	e.retry = true
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var dns *net.DNSError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.Is(err, errSlow), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		err = errSlow
		e.hint = "the store or the network is overloaded"
	case errors.As(err, &dns):
		e.hint = "the endpoint's host is unknown; check endpoint= and path_style="
	case errors.As(err, &authority), errors.As(err, &host):
		e.retry = false
		e.hint = "the endpoint's certificate is not trusted; add its authority to this machine's, or name it by SSL_CERT_FILE"
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		e.retry = false
		e.hint = "the endpoint speaks http: write endpoint=http://…"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.hint = "nothing listens there; start the store, or check endpoint="
	case strings.Contains(err.Error(), "Connection closed by foreign host"):
		err = errors.New("the connection was closed before an answer came")
	}
	e.cause = fmt.Errorf("%s: %w", s.host, err)
}

// explainStatus is about answers that say no.
func (s *S3) explainStatus(e *s3Error, resp minio.ErrorResponse) {
	e.status, e.code = resp.StatusCode, resp.Code
	e.cause = errors.New(resp.Code)
	if text := strings.TrimSuffix(strings.TrimSpace(resp.Message), "."); text != "" && text != resp.Code {
		e.cause = fmt.Errorf("%s (%s)", resp.Code, text)
	}
	// A server over a folder may say the last of these of a put beside a delete.
	e.retry = resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented && resp.StatusCode != http.StatusInsufficientStorage ||
		resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout ||
		slices.Contains([]string{
			"RequestTimeout", "Throttling", "ThrottlingException", "SlowDown", "ConditionalRequestConflict", "OperationAborted",
			"ExistingObjectIsDirectory",
		}, resp.Code)
	e.hint = s.hint(e, resp)
}

// hint says what to do about a status.
func (s *S3) hint(e *s3Error, resp minio.ErrorResponse) string {
	switch resp.Code {
	case "NoSuchBucket":
		return "create bucket " + s.conf.bucket + ", or name another"
	case "InvalidAccessKeyId", "XAdminUserNotFound":
		return "the store does not know this access key; check AWS_ACCESS_KEY_ID or the credentials file"
	case "SignatureDoesNotMatch":
		return "the secret key is not that of the access key; check AWS_SECRET_ACCESS_KEY or the credentials file"
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired":
		return "the session token has expired; get a new one"
	case "InvalidToken", "InvalidSecurity":
		return "the session token is not that of the access key; check AWS_SESSION_TOKEN"
	case "RequestTimeTooSkewed", "RequestExpired":
		return "the clocks of this machine and of the store differ by more than 15 minutes; set this machine's"
	case "AuthorizationHeaderMalformed", "InvalidRegion", "PermanentRedirect", "TemporaryRedirect", "IllegalLocationConstraintException", "Redirect":
		return s.regionHint(resp.Region)
	case "MethodNotAllowed":
		return "is this an S3 store? check endpoint= and path_style="
	case "QuotaExceeded", "XMinioStorageFull", "InsufficientStorage", "XMinioAdminBucketQuotaExceeded":
		return "the store is full; make room, or raise the bucket's quota"
	case "SlowDown", "ServiceUnavailable", "Throttling", "ThrottlingException", "TooManyRequests":
		return "the store asks to be used less"
	}
	switch {
	case resp.StatusCode == http.StatusMovedPermanently || resp.StatusCode == http.StatusBadRequest && resp.Region != "" && resp.Region != s.conf.region:
		return s.regionHint(resp.Region)
	case resp.StatusCode == http.StatusForbidden:
		return fmt.Sprintf("the credentials need %s on %s", permission(e.verb), s.resource(e.verb))
	case resp.StatusCode == http.StatusUnauthorized:
		return "the store does not take these credentials"
	}
	return ""
}

func (s *S3) regionHint(right string) string {
	if right == "" || right == s.conf.region {
		return fmt.Sprintf("is %s the bucket's region? give the right one with region=", s.conf.region)
	}
	return fmt.Sprintf("the bucket is in region %s, not %s: give region=%s", right, s.conf.region, right)
}

// resource is what a permission has to be given on.
func (s *S3) resource(verb string) string {
	if verb == verbList || verb == verbFind {
		return "arn:aws:s3:::" + s.conf.bucket
	}
	return "arn:aws:s3:::" + s.conf.bucket + "/" + s.conf.prefix + "*"
}
