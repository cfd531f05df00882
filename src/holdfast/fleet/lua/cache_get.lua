-- What is kept. KEYS: the epoch's, and each value's. ARGV: the next epoch, and whether to look for a restart.
local epoch = current_epoch(ARGV[1], ARGV[2] == '1')
local answers = {}
for place = 2, #KEYS do
  answers[place - 1] = look(KEYS[place], epoch)
end
return cmsgpack.pack(answers)
