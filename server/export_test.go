package server

import "github.com/labstack/echo/v4"

// Routes is the route table.
func Routes() []*echo.Route {
	e := echo.New()
	(&Server{}).routes(e)
	return e.Routes()
}
