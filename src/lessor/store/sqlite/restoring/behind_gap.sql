-- Nobody knows what the lost store handed out after the backup: leave a gap.
UPDATE repository SET term = term + :gap, last_number = last_number + :gap;
UPDATE sqlite_sequence SET seq = seq + :gap;
