"""Who uses the pages: sessions kept on the server, logging in and out, and forms that no other site can send."""
