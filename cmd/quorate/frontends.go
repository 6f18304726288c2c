package main

import (
	"net/http"

	"github.com/quorate/quorate/compat/yunikorn"
	"github.com/quorate/quorate/rpc"
)

// frontEnds are the protocols of other systems that every node serves beside the API.
var frontEnds = []rpc.FrontEnd{
	{Pattern: "/ws/v1/", New: func(s rpc.Services) http.Handler { return yunikorn.NewHandler(s.Trees) }},
}
