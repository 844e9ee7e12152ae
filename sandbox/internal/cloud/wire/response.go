package wire

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"log/slog"
	"net/http"
)

// Error is an answer that refuses a call.
type Error struct {
	Code, Message string
	// Status defaults to 400.
	Status int
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func (e *Error) httpStatus() int {
	if e.Status == 0 {
		return http.StatusBadRequest
	}
	return e.Status
}

// WriteResponse answers a call; req is nil if it could not be read.
func WriteResponse(w http.ResponseWriter, req *Request, id string, answer any, err error) {
	w.Header().Set("X-Amzn-Requestid", id)
	if err != nil {
		writeError(w, req, id, err)
		return
	}
	var body bytes.Buffer
	switch req.Protocol {
	case EC2Query, Query:
		w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
		err = writeXML(&body, req, answer)
	default:
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		err = json.NewEncoder(&body).Encode(answer)
	}
	if err != nil {
		writeError(w, req, id, err)
		return
	}
	sendBody(w, http.StatusOK, body.Bytes())
}

// writeXML wraps an answer as the protocol requires: EC2's in one element, others in two.
func writeXML(body *bytes.Buffer, req *Request, answer any) error {
	outer := xml.StartElement{Name: xml.Name{Local: req.Action + "Response"}}
	e := xml.NewEncoder(body)
	if req.Protocol == EC2Query {
		return e.EncodeElement(answer, outer)
	}
	inner := xml.StartElement{Name: xml.Name{Local: req.Action + "Result"}}
	return errors.Join(e.EncodeToken(outer), e.EncodeElement(answer, inner), e.EncodeToken(outer.End()), e.Flush())
}

type ec2Error struct {
	XMLName   xml.Name `xml:"Response"`
	Code      string   `xml:"Errors>Error>Code"`
	Message   string   `xml:"Errors>Error>Message"`
	RequestID string   `xml:"RequestID"`
}

type queryError struct {
	XMLName   xml.Name `xml:"ErrorResponse"`
	Type      string   `xml:"Error>Type"`
	Code      string   `xml:"Error>Code"`
	Message   string   `xml:"Error>Message"`
	RequestID string   `xml:"RequestId"`
}

type jsonError struct {
	Type    string `json:"__type"`
	Message string `json:"message"`
}

func writeError(w http.ResponseWriter, req *Request, id string, err error) {
	var refusal *Error
	if !errors.As(err, &refusal) {
		// Any other error is not the caller's.
		slog.Error("a call could not be answered", "error", err)
		refusal = &Error{Code: "InternalError", Message: "An internal error has occurred", Status: http.StatusInternalServerError}
	}
	protocol := JSON
	if req != nil {
		protocol = req.Protocol
	}
	var body []byte
	switch protocol {
	case EC2Query:
		body, err = xml.Marshal(ec2Error{Code: refusal.Code, Message: refusal.Message, RequestID: id})
	case Query:
		kind := "Sender"
		if refusal.httpStatus() >= http.StatusInternalServerError {
			kind = "Receiver"
		}
		body, err = xml.Marshal(queryError{Type: kind, Code: refusal.Code, Message: refusal.Message, RequestID: id})
	default:
		w.Header().Set("X-Amzn-Errortype", refusal.Code)
		body, err = json.Marshal(jsonError{Type: refusal.Code, Message: refusal.Message})
	}
	if err != nil {
		slog.Error("an error could not be written", "error", err)
	}
	sendBody(w, refusal.httpStatus(), body)
}

func sendBody(w http.ResponseWriter, status int, body []byte) {
	w.WriteHeader(status)
	// A client that has disconnected gets an error of its own.
	_, _ = w.Write(body)
}

// ErrorCode returns the code of the answer for an error.
func ErrorCode(err error) string {
	var refusal *Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return "InternalError"
}
