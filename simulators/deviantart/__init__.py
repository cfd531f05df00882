"""DeviantArt as a server on loopback: OAuth2, sta.sh, publishing, galleries, browsing, and all that goes wrong with them."""
